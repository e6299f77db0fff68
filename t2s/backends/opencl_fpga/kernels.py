"""One kernel per node: time loops outside, unrolled space loops inside, state around them."""

from __future__ import annotations

from t2s.backends.opencl_fpga.body import lower_body
from t2s.backends.opencl_fpga.c_types import scalar_name, start_of, storage_name, variables
from t2s.backends.opencl_fpga.comments import kernel_comment
from t2s.backends.opencl_fpga.conditions import shared_conditions
from t2s.backends.opencl_fpga.digit_counters import DigitCounters
from t2s.backends.opencl_fpga.domains import extent_of
from t2s.backends.opencl_fpga.expressions import Expressions
from t2s.backends.opencl_fpga.kernel_ast import (
    Declare,
    For,
    KernelDefinition,
    TypedName,
    ZeroInitializer,
    element,
)
from t2s.backends.opencl_fpga.kernel_scope import KernelScope, Positions, where
from t2s.backends.opencl_fpga.links import Bundle, Delay, PEWire
from t2s.backends.opencl_fpga.lockstep import ChannelPort, LockstepNode
from t2s.backends.opencl_fpga.operators import Helpers
from t2s.backends.opencl_fpga.port_forms import (
    advance,
    control_fence,
    is_control,
    moved_along,
    read_channel,
    write_channel,
)
from t2s.backends.opencl_fpga.registers import RegisterPlan, plan_registers
from t2s.backends.opencl_fpga.scope import FileScope, KernelDesign, dimensions_of
from t2s.backends.opencl_fpga.time_loops import time_loops
from t2s.backends.text.expressions import (
    Name,
    Set,
    TargetStatement,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import TRUE, Local, Parameter, conjunction, index_names
from t2s.core.walk import walk
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import ScalarParameter


def arguments_of(
    design: KernelDesign, node: LockstepNode
) -> tuple[list[str], list[ScalarParameter]]:
    """The tensors and scalars that a kernel is given, in this order."""
    tensors: dict[str, None] = {}
    for statement in node.body:
        if isinstance(statement, Load | Store):
            tensors[statement.tensor] = None
    terms = [term for statement in node.body for term in walk(statement)]
    terms += [term for loop in node.loops for e in (loop.start, loop.stop) for term in walk(e)]
    ports = (*node.receives.values(), *node.sends.values())
    terms += [term for port in ports for expr in port.expressions for term in walk(expr)]
    used = {term.name for term in terms if isinstance(term, Parameter)}
    return list(tensors), [p for p in design.graph.parameters if p.name in used]


def lower_kernel(
    design: KernelDesign, file: FileScope, node: LockstepNode, helpers: Helpers
) -> KernelDefinition:
    """The kernel of a node."""
    identifiers = variables(file.visible)
    tensors, scalars = arguments_of(design, node)
    tensor_names = {name: identifiers.fresh(name) for name in tensors}
    names = {scalar.name: identifiers.fresh(scalar.name) for scalar in scalars}
    indices = (*(d.name for d in node.space), *(loop.name for loop in node.loops))
    names |= {name: identifiers.fresh(name) for name in indices}
    plans = plan_registers(node)
    registers = {name: identifiers.fresh(name) for name in plans}
    ports = {**node.receives, **node.sends}
    tokens = _tokens(design, file, node, identifiers)
    scope = KernelScope(
        design=design,
        file=file,
        node=node,
        identifiers=identifiers,
        expressions=Expressions(
            helpers,
            node.ranges,
            names,
            DigitCounters((loop.name for loop in node.loops), identifiers),
        ),
        tensors=tensor_names,
        registers=registers,
        plans=plans,
        tokens=tokens,
        positions=_positions(design, file, ports, identifiers),
        conditions={
            factors: identifiers.fresh(name) for factors, name in shared_conditions(node).items()
        },
    )
    parameters = [_tensor_parameter(scope, name) for name in tensors]
    parameters += [
        TypedName(type=f"const {scalar_name(scalar.type)}", name=names[scalar.name])
        for scalar in scalars
    ]
    forever = None if parameters else endless_loops(scope)
    outside, nest = time_loops(scope, _iteration(scope), forever=forever)
    return KernelDefinition(
        name=file.kernels[node.name],
        parameters=tuple(parameters),
        body=(*_state(scope), *outside, *nest),
        comment=kernel_comment(node, forever=forever),
    )


def _tokens(
    design: KernelDesign, file: FileScope, node: LockstepNode, identifiers: Identifiers
) -> dict[str, str]:
    """The variable of every bundle: ``from_`` its source or ``to_`` its sink, if that is unique."""
    wanted: dict[str, str] = {}
    for ports, verb in ((node.receives, "from"), (node.sends, "to")):
        for name, port in ports.items():
            other = port.channel.source if verb == "from" else port.channel.sink
            if isinstance(design.link_at(name, node), Bundle):
                wanted[name] = f"{verb}_{file.kernels[other]}"
    names = list(wanted.values())
    return {
        name: identifiers.fresh(text if names.count(text) == 1 else f"{file.channels[name]}_token")
        for name, text in wanted.items()
    }


def _positions(
    design: KernelDesign, file: FileScope, ports: dict[str, ChannelPort], identifiers: Identifiers
) -> dict[str, Positions]:
    result: dict[str, Positions] = {}
    for name in ports:
        link = design.link(name)
        if isinstance(link, Delay) and link.depth > 1 and link.lag is None:
            stem = file.channels[name]
            result[name] = Positions(
                read=identifiers.fresh(f"{stem}_read"), write=identifiers.fresh(f"{stem}_write")
            )
    return result


def _tensor_parameter(scope: KernelScope, tensor: str) -> TypedName:
    info = scope.design.graph.tensor(tensor)
    stored = any(isinstance(s, Store) and s.tensor == tensor for s in scope.node.body)
    name = scope.tensors[tensor]
    if scope.is_intermediate(tensor):
        return TypedName(type=f"__global volatile {scalar_name(info.type)} *", name=name)
    constant = "" if stored else "const "
    return TypedName(type=f"__global {constant}{scalar_name(info.type)} *restrict", name=name)


# ------------------------------------------------------------------------------------- state


def _state(scope: KernelScope) -> list[TargetStatement]:
    """Registers of all PEs and FIFOs inside the kernel."""
    statements: list[TargetStatement] = [
        _register_file(scope, plan) for plan in scope.plans.values()
    ]
    for name in {**scope.node.receives, **scope.node.sends}:
        link = scope.design.link(name)
        if isinstance(link, Delay):
            statements += _fifo_state(scope, link)
    return statements


def _register_file(scope: KernelScope, plan: RegisterPlan) -> Declare:
    extents = tuple(dimension.extent for dimension in scope.node.space)
    kept = tuple(size for size in plan.register.shape if size > 1)
    shape = (*extents, *kept)
    comment = None
    attributes: tuple[str, ...] = ()
    if plan.rotating:
        shape = (*extents, plan.length)
        comment = f"rotates every {plan.length} firings; the last is the oldest"
    elif plan.memory is not None:
        shape = (*kept, *plan.memory.banks)
        attributes = plan.memory.attributes
    return Declare(
        type=storage_name(plan.register.type),
        name=scope.registers[plan.register.name],
        dimensions=shape,
        initial=start_of(plan.register, shape) if plan.cleared else None,
        comment=comment,
        attributes=attributes,
    )


def _fifo_state(scope: KernelScope, link: Delay) -> list[TargetStatement]:
    name, shape = link.channel.name, dimensions_of(link.channel)
    if link.lag is not None:
        return [
            Declare(
                type=storage_name(link.channel.stream.element),
                name=scope.file.channels[name],
                dimensions=(*shape, link.lag + 1),
                comment=f"moves on in every iteration; the last was sent {link.lag} ago",
            )
        ]
    long = (link.depth,) if link.depth > 1 else ()
    tokens = "1 token" if link.depth == 1 else f"up to {link.depth} tokens"
    statements: list[TargetStatement] = [
        Declare(
            type=storage_name(link.channel.stream.element),
            name=scope.file.channels[name],
            dimensions=(*shape, *long),
            comment=f"{tokens} per element, from PE to PE across iterations",
        )
    ]
    if long:
        places = () if link.uniform else shape
        positions = scope.positions[name]
        statements += [
            Declare(
                type="int",
                name=variable,
                dimensions=places,
                initial=ZeroInitializer() if places else number(0),
            )
            for variable in (positions.read, positions.write)
        ]
    return statements


# --------------------------------------------------------------------------------- iteration


def _iteration(scope: KernelScope) -> list[TargetStatement]:
    """One iteration of all PEs: take the bundles, run the PEs, send the bundles."""
    node = scope.node
    passed = _passed_on(scope)
    if passed is not None:
        return passed
    before: list[TargetStatement] = [
        Declare(type="bool", name=name, initial=scope.lower(conjunction(*factors) or TRUE))
        for factors, name in scope.conditions.items()
    ]
    wires: list[TargetStatement] = []
    after: list[TargetStatement] = []
    for name, port in node.receives.items():
        match scope.link(name):
            case Bundle():
                before += _take_bundle(scope, name, port)
            case PEWire(channel=channel):
                wires.append(
                    Declare(
                        type=storage_name(channel.stream.element),
                        name=scope.file.channels[name],
                        dimensions=dimensions_of(channel),
                        comment="wires from PE to PE",
                    )
                )
            case Delay(uniform=True, depth=depth, lag=None) if depth > 1:
                move = advance(Name(name=scope.positions[name].read), depth)
                after += where(scope.condition(conjunction(*port.time_factors)), [move])
    for name, port in node.sends.items():
        match scope.link(name):
            case Bundle(channel=channel):
                token = scope.tokens[name]
                before.append(Declare(type=scope.file.structs[name], name=token))
                fence: list[TargetStatement] = [control_fence()] if is_control(channel) else []
                target = element(scope.file.channels[name])
                sent = [*fence, write_channel(target, Name(name=token))]
                after += where(scope.condition(conjunction(*port.time_factors)), sent)
            case Delay(lag=int() as lag) as link:
                after += moved_along(scope, link, lag)
            case Delay(uniform=True, depth=depth) if depth > 1:
                move = advance(Name(name=scope.positions[name].write), depth)
                after += where(scope.condition(conjunction(*port.time_factors)), [move])
    return [*before, *wires, *_space_loops(scope, lower_body(scope)), *after]


def _passed_on(scope: KernelScope) -> list[TargetStatement] | None:
    """The iteration of a node that only passes bundles on, from one channel to another."""
    match scope.node.body:
        case (Receive(channel=taken, target=target), Send(channel=sent, value=Local(name=name))):
            if target != name or not {taken, sent} <= scope.tokens.keys():
                return None
        case _:
            return None
    source, sink = scope.node.receives[taken], scope.node.sends[sent]
    same_type = scope.file.structs[taken] == scope.file.structs[sent]
    if not same_type or source.expressions != sink.expressions:
        return None
    token = read_channel(element(scope.file.channels[taken]))
    moved = write_channel(element(scope.file.channels[sent]), token)
    condition = conjunction(*source.time_factors)
    return where(None if condition is None else scope.lower(condition), [moved])


def _take_bundle(scope: KernelScope, name: str, port: ChannelPort) -> list[TargetStatement]:
    type, token = scope.file.structs[name], scope.tokens[name]
    fence: list[TargetStatement] = [control_fence()] if is_control(port.channel) else []
    taken = read_channel(element(scope.file.channels[name]))
    condition = scope.condition(conjunction(*port.time_factors))
    if condition is None:
        return [Declare(type=type, name=token, initial=taken), *fence]
    assign = Set(target=Name(name=token), value=taken)
    return [Declare(type=type, name=token), *where(condition, [assign, *fence])]


def _space_loops(scope: KernelScope, body: list[TargetStatement]) -> list[TargetStatement]:
    """The PEs: unrolled, each dimension in the direction that runs senders before receivers."""
    descending = scope.design.links.descending[scope.node.name]
    for dimension in reversed(scope.node.space):
        first, last = dimension.minimum, dimension.minimum + dimension.extent - 1
        down = dimension.name in descending
        loop = For(
            name=scope.expressions.variable(dimension.name),
            start=number(last if down else first),
            stop=number(first if down else last + 1),
            body=tuple(body),
            down=down,
            unroll=True,
        )
        body = [loop]
    return body


def endless_loops(scope: KernelScope) -> int | None:
    """How many of the outermost loops an autorun kernel may turn into ``while (1)``.

    Those on which nothing depends; ``None`` if the kernel has to end, so that its next start
    clears its registers.  An autorun kernel that ends is started again by the hardware.
    """
    node = scope.node
    if any(plan.cleared for plan in scope.plans.values()):
        return None
    used = set(index_names_of_body(node))
    used |= {n for loop in node.loops for e in (loop.start, loop.stop) for n in index_names(e)}
    for at, loop in enumerate(node.loops):
        if loop.name in used or extent_of(loop, node) is None:
            return at or None
    return len(node.loops)


def index_names_of_body(node: LockstepNode) -> frozenset[str]:
    """Loops and space dimensions that the body and its ports mention."""
    ports = (*node.receives.values(), *node.sends.values())
    names = [index_names(statement) for statement in node.body]
    names += [index_names(expr) for port in ports for expr in port.expressions]
    return frozenset().union(*names)
