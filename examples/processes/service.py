"""A server that answers two clients in turn, and waits for ever when they have ended.

Run it with ``python examples/processes/service.py``; docs/processes.md explains it.
"""

import numpy as np

import t2s
from t2s import Int, Network

COUNT = 4
design = Network("service")
server = design.process("server", endless=True)
turns = []
for number in range(2):
    x = design.input(f"x{number}", Int(32), COUNT)
    y = design.output(f"y{number}", Int(32), COUNT)
    request = design.channel(f"request{number}", Int(32), depth=2)
    answer = design.channel(f"answer{number}", Int(32), depth=2)
    turns.append((server.mode(f"turn{number}", waits=[request]), request, answer))

    client = design.process(f"client{number}")
    n = client.register("n", Int(32))
    ask, listen = client.mode("ask"), client.mode("listen", waits=[answer])
    ask.rule(when=n < COUNT, puts={request: x[n]}, next=listen)
    ask.rule()
    listen.rule(takes=[answer], stores=[(y, n, answer.value)], sets={n: n + 1}, next=ask)

for (mode, request, answer), (following, _, _) in zip(turns, turns[::-1], strict=True):
    square = request.value * request.value
    mode.rule(takes=[request], puts={answer: square}, next=following)

inputs = {"x0": np.arange(4, dtype=np.int32), "x1": np.arange(4, 8, dtype=np.int32)}
graph = design.graph()
result = t2s.simulate(graph, inputs)
print(result.outputs["y0"], result.outputs["y1"], result.nodes["server"].firings)
