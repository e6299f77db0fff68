"""One kernel per node: time loops outside, unrolled space loops inside, state around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.channel_io import (
    advance,
    is_control,
    is_selected,
    moved_along,
    receive,
    send,
)
from t2s.backends.kernels.comments import kernel_comment
from t2s.backends.kernels.conditions import is_used, only_use, shared_conditions
from t2s.backends.kernels.dialect import Access, StateArray, lane_at
from t2s.backends.kernels.digit_counters import (
    DigitCounters,
)
from t2s.backends.kernels.expressions import Expressions
from t2s.backends.kernels.links import Bundle, Delay, PEWire
from t2s.backends.kernels.lockstep import ChannelPort, LockstepNode, extent_of
from t2s.backends.kernels.memory_ports import (
    accesses_per_firing,
    wide_tensors,
)
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.registers import RegisterPlan, plan_registers
from t2s.backends.kernels.scope import (
    FileScope,
    KernelDesign,
    KernelScope,
    Positions,
    dimensions_of,
    where,
)
from t2s.backends.kernels.time_loops import index_names_of_body, time_loops
from t2s.backends.text.expressions import (
    Do,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    binary,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import (
    Expr,
    Local,
    Parameter,
    all_hold,
    conjunction,
    conjuncts,
    index_names,
)
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph import body as graph
from t2s.graph.body import Load, Receive, Send, SpaceDimension, Store
from t2s.graph.graph import Channel, ScalarParameter
from t2s.graph.ports import Wide, is_aligned


def arguments_of(
    design: KernelDesign, node: LockstepNode
) -> tuple[list[str], list[ScalarParameter]]:
    """The tensors and scalars that are arguments of a kernel, in this order."""
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
) -> ast.KernelDefinition:
    """The kernel of a node."""
    dialect = design.dialect
    identifiers = dialect.variables(file.visible)
    tensors, scalars = arguments_of(design, node)
    tensor_names = {name: identifiers.fresh(name) for name in tensors}
    names = {scalar.name: identifiers.fresh(scalar.name) for scalar in scalars}
    indices = (*(d.name for d in node.space), *(loop.name for loop in node.loops))
    names |= {name: identifiers.fresh(name) for name in indices}
    wide = wide_tensors(design, node)
    own = {*tensor_names, *names, *(getattr(s, "target", "") for s in node.body)}
    plans = plan_registers(node, whole_nest=dialect.flattens)
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
        wide=wide,
        lane="lane" if "lane" not in own else identifiers.fresh("lane"),
        words=_words(node, wide, identifiers),
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
        ast.TypedName(
            type=f"const {design.dialect.scalar_name(scalar.type)}", name=names[scalar.name]
        )
        for scalar in scalars
    ]
    endless = dialect.endless and not parameters
    forever = endless_loops(scope) if endless else None
    pipeline = ast.Pipeline()
    if dialect.flattens:
        interval = max(accesses_per_firing(node, wide).values(), default=1)
        pipeline = ast.Pipeline(interval=interval, memory=bool(tensors))
    outside, nest = time_loops(scope, _iteration(scope), pipeline, forever=forever)
    return ast.KernelDefinition(
        name=file.kernels[node.name],
        parameters=tuple(parameters),
        body=(*_state(scope), *outside, *nest),
        comment=kernel_comment(node, forever=forever),
    )


def _tokens(
    design: KernelDesign, file: FileScope, node: LockstepNode, identifiers: Identifiers
) -> dict[str, str]:
    """The variable of every bundle, named after its source or its sink if that is unique."""
    preferred: dict[str, str] = {}
    for ports, verb in ((node.receives, "from"), (node.sends, "to")):
        for name, port in ports.items():
            other = port.channel.source if verb == "from" else port.channel.sink
            if isinstance(design.link_at(name, node), Bundle):
                preferred[name] = f"{verb}_{file.kernels[other]}"
    names = list(preferred.values())
    return {
        name: identifiers.fresh(text if names.count(text) == 1 else f"{file.channels[name]}_token")
        for name, text in preferred.items()
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


def _tensor_parameter(scope: KernelScope, tensor: str) -> ast.TypedName:
    info = scope.design.graph.tensor(tensor)
    stored = any(isinstance(s, Store) and s.tensor == tensor for s in scope.node.body)
    type = info.type.with_lanes(_lanes_of_word(scope, tensor))
    return scope.dialect.tensor_parameter(
        scope.tensors[tensor], type, stored=stored, shared=scope.is_intermediate(tensor)
    )


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


def _register_file(scope: KernelScope, plan: RegisterPlan) -> ast.Declare:
    extents = tuple(dimension.extent for dimension in scope.node.space)
    sizes = tuple(size for size in plan.register.shape if size > 1)
    shape, comment = (*extents, *sizes), None
    split = tuple(range(len(shape)))
    if plan.rotating:
        shape = (*extents, plan.length)
        split = tuple(range(len(shape)))
        comment = f"rotates every {plan.length} firings; the last is the oldest"
    elif plan.in_memory:
        shape = (*sizes, *scope.dialect.banks(plan.register.type, extents))
        split = tuple(range(len(sizes), len(shape)))
    array = StateArray(
        name=scope.registers[plan.register.name],
        type=plan.register.type,
        dimensions=shape,
        split=split,
        in_memory=plan.in_memory,
        single_ports=plan.single_ports,
    )
    initial = scope.dialect.start_of(plan.register, shape) if plan.cleared else None
    return _declared_array(scope, array, initial, comment)


def _declared_array(
    scope: KernelScope,
    array: StateArray,
    initial: TargetExpression | None = None,
    comment: str | None = None,
) -> ast.Declare:
    return ast.Declare(
        type=scope.dialect.storage_name(array.type),
        name=array.name,
        dimensions=array.dimensions,
        initial=initial,
        comment=comment,
        attributes=scope.dialect.array_attributes(array),
    )


def _fifo_state(scope: KernelScope, link: Delay) -> list[TargetStatement]:
    name, shape = link.channel.name, dimensions_of(link.channel)
    long = (link.depth,) if link.depth > 1 else ()
    if link.lag is not None:
        long = (link.lag + 1,)
        comment = f"moves on in every iteration; the last was sent {link.lag} ago"
    else:
        tokens = "1 token" if link.depth == 1 else f"up to {link.depth} tokens"
        comment = f"{tokens} per element, from PE to PE across iterations"
    # a shift register moves all of its elements at once; a FIFO has one position at a time
    array = StateArray(
        name=scope.file.channels[name],
        type=link.channel.stream.element,
        dimensions=(*shape, *long),
        split=tuple(range(len(shape) + (link.lag is not None))),
    )
    statements: list[TargetStatement] = [_declared_array(scope, array, comment=comment)]
    if long and link.lag is None:
        places = () if link.uniform else shape
        positions = scope.positions[name]
        for variable in (positions.read, positions.write):
            array = StateArray(
                name=variable, type=INT32, dimensions=places, split=tuple(range(len(places)))
            )
            initial = ast.ZeroInitializer() if places else number(0)
            statements.append(replace(_declared_array(scope, array, initial), type="int"))
    return statements


# --------------------------------------------------------------------------------- iteration


def _iteration(scope: KernelScope) -> list[TargetStatement]:
    """One iteration of all PEs: take the bundles, run the PEs, send the bundles."""
    node = scope.node
    passed = _passed_on(scope)
    if passed is not None:
        return passed
    before: list[TargetStatement] = [
        ast.Declare(type="bool", name=name, initial=scope.lower(all_hold(*factors)))
        for factors, name in scope.conditions.items()
    ]
    wires: list[TargetStatement] = []
    after: list[TargetStatement] = []
    for name, port in node.receives.items():
        match scope.link(name):
            case Bundle():
                before += _take_bundle(scope, name, port)
            case PEWire(channel=channel):
                wire = StateArray(
                    name=scope.file.channels[name],
                    type=channel.stream.element,
                    dimensions=dimensions_of(channel),
                    split=tuple(range(len(dimensions_of(channel)))),
                )
                start = _start_of_scalar(scope, channel)
                wires.append(_declared_array(scope, wire, start, comment="wires from PE to PE"))
            case Delay(uniform=True, depth=depth, lag=None) if depth > 1:
                move = advance(Name(name=scope.positions[name].read), depth)
                after += where(scope.condition(conjunction(*port.time_factors)), [move])
    for name, port in node.sends.items():
        match scope.link(name):
            case Bundle(channel=channel):
                token = _declared_token(scope, channel)
                before.append(token)
                fence = scope.dialect.control_fence() if is_control(channel) else []
                target = ast.element(scope.file.channels[name])
                sent = [*fence, scope.dialect.write_channel(target, Name(name=token.name))]
                after += where(scope.condition(conjunction(*port.time_factors)), sent)
            case Delay(lag=int() as lag) as link:
                after += moved_along(scope, link, lag)
            case Delay(uniform=True, depth=depth) if depth > 1:
                move = advance(Name(name=scope.positions[name].write), depth)
                after += where(scope.condition(conjunction(*port.time_factors)), [move])
    return [*before, *wires, *_space_loops(scope, lower_body(scope)), *after]


def _passed_on(scope: KernelScope) -> list[TargetStatement] | None:
    """The iteration of a node that only forwards bundles, from one channel to another."""
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
    token = scope.dialect.read_channel(ast.element(scope.file.channels[taken]))
    moved = scope.dialect.write_channel(ast.element(scope.file.channels[sent]), token)
    condition = conjunction(*source.time_factors)
    return where(None if condition is None else scope.lower(condition), [moved])


def _take_bundle(scope: KernelScope, name: str, port: ChannelPort) -> list[TargetStatement]:
    token = _declared_token(scope, port.channel)
    fence = scope.dialect.control_fence() if is_control(port.channel) else []
    taken = scope.dialect.read_channel(ast.element(scope.file.channels[name]))
    condition = scope.condition(conjunction(*port.time_factors))
    used = any(
        isinstance(s, Receive) and s.channel == name and is_used(s.target, scope.node.body)
        for s in scope.node.body
    )
    if scope.dialect.drops_unused and not used:
        return where(condition, [Do(call=taken), *fence])
    if condition is None:
        return [replace(token, initial=taken), *fence]
    assign = Set(target=Name(name=token.name), value=taken)
    token = replace(token, initial=_start_of_scalar(scope, port.channel))
    return [token, *where(condition, [assign, *fence])]


def _start_of_scalar(scope: KernelScope, channel: Channel) -> TargetExpression | None:
    """The first value of a variable for a single element, which a condition may leave unset."""
    type = channel.stream.element
    if not scope.dialect.starts_at_zero or dimensions_of(channel):
        return None
    return ast.ZeroInitializer() if scope.dialect.is_struct(type) else scope.dialect.zero(type)


def _declared_token(scope: KernelScope, channel: Channel) -> ast.Declare:
    """The variable of a bundle, whose elements the unrolled PEs use all at once."""
    name, dimensions = scope.tokens[channel.name], dimensions_of(channel)
    attributes: tuple[str, ...] = ()
    if dimensions:
        elements = StateArray(
            name=f"{name}.s",
            type=channel.stream.element,
            dimensions=dimensions,
            split=tuple(range(len(dimensions))),
        )
        attributes = scope.dialect.array_attributes(elements)
    return ast.Declare(type=scope.file.structs[channel.name], name=name, attributes=attributes)


def _space_loops(scope: KernelScope, body: list[TargetStatement]) -> list[TargetStatement]:
    """The PEs: unrolled, each dimension in the direction that runs senders before receivers."""
    for dimension in reversed(scope.node.space):
        body = _with_words(scope, dimension, _pe_loop(scope, dimension, body))
    return body


def _pe_loop(scope: KernelScope, dimension: SpaceDimension, body: list[TargetStatement]) -> ast.For:
    first, last = dimension.minimum, dimension.minimum + dimension.extent - 1
    down = dimension.name in scope.design.links.descending[scope.node.name]
    return ast.For(
        name=scope.expressions.variable(dimension.name),
        start=number(last if down else first),
        stop=number(first if down else last + 1),
        body=tuple(body),
        down=down,
        unroll=True,
    )


def endless_loops(scope: KernelScope) -> int | None:
    """How many of the outermost loops of an autorun kernel may become ``while (1)``.

    Nothing may depend on them.  ``None`` if the kernel has to end, so that its restart by the
    hardware clears its registers.
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


# The body of a PE as statements inside the unrolled space loops of its kernel.


def lower_body(scope: KernelScope) -> list[TargetStatement]:
    """The body of one PE, in order; inside the node's guard if not all PEs take part."""
    statements = [s for statement in scope.node.body for s in _statement(scope, statement)]
    guard = scope.node.guard
    return where(None if guard is None else scope.lower(guard), statements)


def _statement(scope: KernelScope, statement: graph.Statement) -> list[TargetStatement]:
    match statement:
        case graph.Receive():
            return receive(scope, statement)
        case graph.Send():
            return send(scope, statement)
        case graph.Let(target=target, value=value):
            return scope.bind(target, value.type, scope.lower(value))
        case graph.Load():
            return _load(scope, statement)
        case graph.Store():
            return _store(scope, statement)
        case graph.RegisterRead(target=target, register=register, indices=indices, type=type):
            register_value = _register(scope, register, indices, last=True)
            if _read_where_used(scope, statement):
                scope.expressions.locals[target] = register_value
                return []
            return scope.bind(target, type, register_value)
        case graph.RegisterWrite():
            return _register_write(scope, statement)
    raise TypeError(f"{statement.__class__.__name__} has no form in a kernel")


def _read_where_used(scope: KernelScope, read: graph.Load | graph.RegisterRead) -> bool:
    """Whether a value has a single use, and is still unchanged in memory at that use."""
    body = scope.node.body
    used_at = only_use(read.target, body)
    if used_at is None:
        return False
    match body[used_at]:
        case graph.Send(channel=channel) if is_selected(scope, scope.node.sends[channel]):
            return False
    between = body[body.index(read) + 1 : used_at + 1]
    match read:
        case graph.Load(tensor=tensor):
            unchanged = not scope.is_intermediate(tensor)
            return unchanged and not any(isinstance(s, graph.Store) for s in between)
        case graph.RegisterRead(register=register):
            return not any(
                isinstance(s, graph.RegisterWrite) and s.register == register for s in between
            )


# ------------------------------------------------------------------------------------ memory


def _load(scope: KernelScope, statement: graph.Load) -> list[TargetStatement]:
    access, type = _access(scope, statement, statement.type), statement.type
    value: TargetExpression | None = ast.element(access.tensor, access.position)
    if statement in scope.words:
        value = _lane_of_word(scope, statement, number(0)) if type.lanes == 1 else None
    elif type.lanes > 1:
        value = scope.dialect.vector_load(access)
    if value is not None:
        if statement.condition is None and _read_where_used(scope, statement):
            scope.expressions.locals[statement.target] = value
            return []
        return scope.bind_where(statement.target, type, statement.condition, value)

    def fill(variable: TargetExpression) -> list[TargetStatement]:
        lane = Name(name=scope.lane)
        if statement in scope.words:
            each = _lane_of_word(scope, statement, lane)
        else:
            each = ast.element(access.tensor, binary("+", access.position, lane))
        return [_lanes(scope, type, (Set(target=lane_at(variable, scope.lane), value=each),))]

    return scope.bind_by(statement.target, type, statement.condition, fill)


def _access(scope: KernelScope, statement: graph.Load | graph.Store, type: Type) -> Access:
    tensor = scope.design.graph.tensor(statement.tensor)
    indices, shape = statement.indices, tensor.allocated
    aligned, wide = is_aligned(indices, shape, type.lanes), scope.wide.get(tensor.name)
    if wide is not None:
        indices, shape = wide.first_of(indices, shape)
    return Access(
        tensor=scope.tensors[tensor.name],
        position=scope.expressions.address(indices, shape),
        type=type,
        aligned=aligned,
        shared=scope.is_intermediate(tensor.name),
        whole=wide is not None,
    )


def _store(scope: KernelScope, statement: graph.Store) -> list[TargetStatement]:
    type = statement.value.type
    access = _access(scope, statement, type)
    value = scope.lower(statement.value)
    stored: list[TargetStatement] | None
    if statement in scope.words:
        if type.lanes == 1:
            return [Set(target=_lane_of_word(scope, statement, number(0)), value=value)]
        each = _lane_of_word(scope, statement, Name(name=scope.lane))
        return [_lanes(scope, type, (Set(target=each, value=lane_at(value, scope.lane)),))]
    if type.lanes == 1:
        stored = [Set(target=ast.element(access.tensor, access.position), value=value)]
    else:
        stored = scope.dialect.vector_store(access, value)
    if stored is None:
        each = ast.element(access.tensor, binary("+", access.position, Name(name=scope.lane)))
        stored = [_lanes(scope, type, (Set(target=each, value=lane_at(value, scope.lane)),))]
    return where(scope.condition(statement.condition), stored)


def _lanes(scope: KernelScope, type: Type, body: tuple[TargetStatement, ...]) -> ast.For:
    stop = number(type.lanes)
    return ast.For(name=scope.lane, start=number(0), stop=stop, body=body, unroll=True)


# Words: vectors that PEs along a dimension of space load or store together.  They are variables
# around the loop of that dimension, with an element for each PE of the loops inside.


def _words(
    node: LockstepNode, wide: Mapping[str, Wide], identifiers: Identifiers
) -> dict[Load | Store, str]:
    """The variable of each access that PEs share."""
    names: dict[Load | Store, str] = {}
    for statement in node.body:
        if isinstance(statement, Load | Store):
            vector = wide.get(statement.tensor)
            if vector is not None and vector.across is not None:
                several = vector.words > 1 or _inside(node, vector, statement)
                names[statement] = identifiers.fresh(
                    f"{statement.tensor}_word{'s' if several else ''}"
                )
    return names


def _inside(node: LockstepNode, wide: Wide, statement: Load | Store) -> tuple[SpaceDimension, ...]:
    """The dimensions whose loops are inside, and which an access depends on."""
    conditions = conjuncts(conjunction(node.guard, statement.condition))
    used = [index_names(expr) for expr in (*statement.indices, *conditions)]
    names = [dimension.name for dimension in node.space]
    assert wide.across is not None
    inner = node.space[names.index(wide.across.name) + 1 :]
    return tuple(dimension for dimension in inner if dimension.name in frozenset().union(*used))


def _lanes_of_word(scope: KernelScope, tensor: str) -> int:
    return scope.wide[tensor].lanes if tensor in scope.wide else 1


def _lane_of_word(
    scope: KernelScope, statement: Load | Store, lane: TargetExpression
) -> TargetExpression:
    """An element of the word that a PE shares: ``word.s[j]``, ``words[j / 8].s[j % 8]``."""
    name, wide = scope.words[statement], scope.wide[statement.tensor]
    assert wide.across is not None
    pe, own = pe_index(scope, wide.across), wide.lanes // wide.pes
    at = [pe_index(scope, each) for each in _inside(scope.node, wide, statement)]
    if wide.words > 1:
        at.append(binary("/", pe, number(wide.pes)))
        pe = binary("%", pe, number(wide.pes))
    if own > 1:
        pe = binary("+", binary("*", pe, number(own)), lane)
    return ast.Subscript(base=ast.FieldOf(base=ast.element(name, *at), field="s"), indices=(pe,))


def _moved_words(scope: KernelScope, statement: Load | Store) -> list[TargetStatement]:
    """All words of an access, from memory or to it; those that are loaded are declared."""
    name, wide = scope.words[statement], scope.wide[statement.tensor]
    type = statement.type if isinstance(statement, Load) else statement.value.type
    access, inside = _access(scope, statement, type), _inside(scope.node, wide, statement)
    condition = scope.condition(conjunction(scope.node.guard, statement.condition))
    at, position = [pe_index(scope, each) for each in inside], access.position
    word = scope.identifiers.fresh("word") if wide.words > 1 else ""
    if word:
        at.append(Name(name=word))
        position = binary("+", position, at[-1])
    variable, place = ast.element(name, *at), ast.element(access.tensor, position)
    if isinstance(statement, Store):
        moved: list[TargetStatement] = [Set(target=place, value=variable)]
    elif condition is None and not at:
        return [_declared_word(scope, statement, place)]
    else:
        moved = [Set(target=variable, value=place)]
    if word:
        stop = number(wide.words)
        loop = ast.For(name=word, start=number(0), stop=stop, body=tuple(moved), unroll=True)
        moved = [loop]
    moved = where(condition, moved)
    for dimension in reversed(inside):
        moved = [_pe_loop(scope, dimension, moved)]
    return moved if isinstance(statement, Store) else [_declared_word(scope, statement), *moved]


def _declared_word(
    scope: KernelScope, statement: Load | Store, initial: TargetExpression | None = None
) -> ast.Declare:
    """The words of an access, with all of their lanes; zero where a condition leaves them unset."""
    name, wide = scope.words[statement], scope.wide[statement.tensor]
    type = scope.design.graph.tensor(statement.tensor).type
    sizes = [dimension.extent for dimension in _inside(scope.node, wide, statement)]
    sizes += [wide.words] if wide.words > 1 else []
    array = StateArray(
        name=name,
        type=type.with_lanes(wide.lanes),
        dimensions=tuple(sizes),
        split=tuple(range(len(sizes))),
    )
    lanes = StateArray(name=f"{name}.s", type=type, dimensions=(wide.lanes,), split=(0,))
    if conjunction(scope.node.guard, statement.condition) is not None:
        initial = ast.ZeroInitializer()
    declared = _declared_array(scope, array, initial)
    attributes = (*declared.attributes, *scope.dialect.array_attributes(lanes))
    return replace(declared, attributes=attributes)


def _with_words(
    scope: KernelScope, dimension: SpaceDimension, loop: TargetStatement
) -> list[TargetStatement]:
    """The loop over a dimension between the loads and the stores of words along it."""
    before: list[TargetStatement] = []
    after: list[TargetStatement] = []
    for statement in scope.words:
        if scope.wide[statement.tensor].across == dimension:
            if isinstance(statement, Store):
                before.append(_declared_word(scope, statement))
                after += _moved_words(scope, statement)
            else:
                before += _moved_words(scope, statement)
    return [*before, loop, *after]


# --------------------------------------------------------------------------------- registers


def pe_indices(scope: KernelScope) -> tuple[TargetExpression, ...]:
    """The indices of a PE in the arrays that hold the registers of all PEs."""
    return tuple(pe_index(scope, dimension) for dimension in scope.node.space)


def pe_index(scope: KernelScope, dimension: SpaceDimension) -> TargetExpression:
    """The place of a PE along a dimension, from 0."""
    index = scope.index(dimension.name)
    return binary("-", index, number(dimension.minimum)) if dimension.minimum else index


def _register(
    scope: KernelScope, register: str, indices: Sequence[Expr], *, last: bool
) -> TargetExpression:
    """An element of a register file; of a rotating one the last (oldest) or the first."""
    plan = scope.plans[register]
    name = scope.registers[register]
    if plan.rotating:
        return ast.element(name, *pe_indices(scope), number(plan.length - 1 if last else 0))
    pairs = zip(indices, plan.register.shape, strict=True)
    inner = tuple(scope.lower(index) for index, size in pairs if size > 1)
    if plan.in_memory:
        return ast.element(name, *inner, *pe_indices(scope))
    return ast.element(name, *pe_indices(scope), *inner)


def _register_write(scope: KernelScope, statement: graph.RegisterWrite) -> list[TargetStatement]:
    plan = scope.plans[statement.register]
    value = scope.lower(statement.value)
    target = _register(scope, statement.register, statement.indices, last=False)
    written: list[TargetStatement] = [Set(target=target, value=value)]
    if plan.rotating:
        written.insert(0, _shift(scope, statement.register, plan.length))
    return where(scope.condition(statement.condition), written)


def _shift(scope: KernelScope, register: str, length: int) -> ast.For:
    age = scope.identifiers.fresh("age")
    name, place = scope.registers[register], pe_indices(scope)
    older = ast.element(name, *place, Name(name=age))
    younger = ast.element(name, *place, binary("-", Name(name=age), number(1)))
    return ast.For(
        name=age,
        start=number(length - 1),
        stop=number(1),
        body=(Set(target=older, value=younger),),
        down=True,
        unroll=True,
    )
