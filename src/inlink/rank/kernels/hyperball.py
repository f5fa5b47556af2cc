"""HyperBall: the number of nodes within t steps of each node, by HyperLogLog counters that nodes pass on.

A counter is a row of m = 2^log2m registers, uint8. Each node has a hash of 64 bits. The highest log2m bits of the hash
choose a register, and the register keeps the largest number of trailing zeros plus 1 among all hashes that chose it.
The counter of a union is the maximum, register by register. The ball of t steps around v is the union of v and the
balls of t − 1 steps around the neighbours of v.

Source: Boldi, Rosa & Vigna, "HyperANF: approximating the neighbourhood function of very large graphs on a budget", WWW
2011; Boldi & Vigna, "In-core computation of geometric centralities with HyperBall", ICDMW 2013. A size is estimated
as in Flajolet, Fusy, Gandouet & Meunier, "HyperLogLog", AofA 2007, but empty registers count as in Ertl, "New
cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284 (2017). So the estimate has no threshold
at which it jumps, and never decreases while a ball grows.

The row of v holds the neighbours whose balls v takes over. Three kinds of nodes have a row and need a counter or none:

- A node that is also in a row of another node is read: it has two counters, of the last step and of this step.
- No node reads a node that is in no row. If its row is longer than :data:`LONG`, it has one counter, to which each
  step adds the balls that changed.
- If its row is shorter, it has no counter. A step adds up the balls of its neighbours again if any of them changed.

A node without a row is its own ball. Its hash is added in the first step, and it needs no counter either.

Arrays with one element a node are in the order of the rows, so that rows of split inlinks are read as they are. An
*index* is a place in this order. :class:`Numbering` has the node of each index.
"""

from typing import NamedTuple

from numpy import float32, float64, uint8, uint32, uint64

from inlink.base.arrays import BoolArray, Float32Array, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, keep_larger, kernel, prefetch
from inlink.rank.kernels.paths import population

__all__ = [
    "LONG",
    "NONE",
    "Balls",
    "Counting",
    "Numbering",
    "Readers",
    "few_steps",
    "first_step",
    "next_step",
]

NONE = uint32(0xFFFFFFFF)
LONG = 32

# No register exceeds this number: one of 2⁴⁰ hashes has 39 trailing zeros.
_TOP = uint64(40)
_GUARD = U1 << (_TOP - U1)
_UNIT = 2.0**-40
_NONE = uint64(NONE)
_STEP = uint64(64)
# A counter is prefetched this number of arcs before its use, some 300 ns. Its slot is prefetched twice as early.
_AHEAD = uint64(16)
# The number of registers that are compared at once.
_LINE, _PART = uint64(64), uint64(16)

# Weyl's sequence and the mixer of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014)
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = uint64(0xBF58476D1CE4E5B9), uint64(0x94D049BB133111EB)
_6, _27, _30, _31, _63, _64 = uint64(6), uint64(27), uint64(30), uint64(31), uint64(63), uint64(64)


class Numbering(NamedTuple):
    """The numbers of nodes where inlinks are split. An empty array means that both numbers are the same.

    Attributes
    ----------
    node_of : uint32[n] or uint32[0]
        The node at each index. Its number is hashed.
    reading_of : uint32[n] or uint32[0]
        The row of each index among the rows of readers.
    index_of : uint32[…] or uint32[0]
        The index of each number in the rows of readers.
    """

    node_of: UInt32Array
    reading_of: UInt32Array
    index_of: UInt32Array


class Balls(NamedTuple):
    """The state of all balls, by index.

    Attributes
    ----------
    slots : uint32[n]
        The number of each node's counter. Below k: a pair in ``now`` and ``next``. From k on: a row of ``ends``.
        :data:`NONE`: no counter.
    now, next : uint8[k · m]
        Counters after the last step, and room for this step. They agree where ``changed`` is 0. Their beginning is
        aligned to 64 bytes, so that a counter of 64 registers is one cache line.
    ends : uint8[h · m]
        Counters that no node reads.
    changed, fresh : uint64[⌈n / 64⌉]
        Bits: the balls whose counters changed in the last step, and room for this step.
    sums : float64[n]
        Σ_t weight(t) · (size after t steps − size after t − 1 steps).
    sizes : float32[n]
        The size of each ball, with the node itself.
    """

    slots: UInt32Array
    now: UInt8Array
    next: UInt8Array
    ends: UInt8Array
    changed: UInt64Array
    fresh: UInt64Array
    sums: Float64Array
    sizes: Float32Array


class Counting(NamedTuple):
    """The hash of nodes and the weights of balls.

    Attributes
    ----------
    key : uint64
        Chooses the hash.
    shift : uint64
        64 − log2m.
    scale : float
        α_m · m².
    empty : float64[m + 1]
        The amount that each number of empty registers adds to the denominator.
    inverse : bool
        True: step t weighs 1/t. False: it weighs t.
    """

    key: uint64
    shift: uint64
    scale: float
    empty: Float64Array
    inverse: bool


class Readers(NamedTuple):
    """Work space for steps in which few balls change.

    Attributes
    ----------
    offsets, nodes : uint64[n + 1], uint32[arcs]
        The nodes that read each node: the rows of the reversed arcs.
    changed, reached : uint32[limit], uint32[limit]
        Indices of the nodes that changed in the last step, and of their readers.
    seen : bool[n]
        Marks of the indices in ``reached``. All are False before and after a step.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    changed: UInt32Array
    reached: UInt32Array
    seen: BoolArray


@inlined
def _mapped(numbers: UInt32Array, i: Index) -> Index:
    """Return the number of index ``i``; ``i`` itself if there are no numbers."""
    return uint64(numbers[i]) if len(numbers) > 0 else uint64(i)


@inlined
def _is_marked(marks: UInt64Array, i: Index) -> bool:
    """Return whether a bit is set. Marks of one bit a node fit in the fast caches; bytes would not."""
    return bool((marks[uint64(i) >> _6] >> (uint64(i) & _63)) & U1 != U0)


@inlined
def _counter(counters: UInt8Array, s: Index, m: uint64) -> UInt8Array:
    return counters[s * m : (s + U1) * m]


@inlined
def _add(counter: UInt8Array, node: Index, key: uint64, shift: uint64) -> None:
    """Add a node to a ball."""
    h = key + uint64(node) * _GOLDEN
    h = (h ^ (h >> _30)) * _MIX1
    h = (h ^ (h >> _27)) * _MIX2
    h ^= h >> _31
    low = h | _GUARD
    value = uint8(population((low & (~low + U1)) - U1) + U1)
    place = h >> shift
    if counter[place] < value:
        counter[place] = value


@inlined
def _merge(counters: UInt8Array, to: Index, others: UInt8Array, other: Index, m: uint64) -> None:
    """Raise the registers that begin at ``to`` to those that begin at ``other``."""
    if m >= _LINE:
        for j in range(U0, m, _LINE):
            keep_larger(counters, to + j, others, other + j, 64)
    else:
        for j in range(U0, m, _PART):
            keep_larger(counters, to + j, others, other + j, 16)


@inlined
def _copy(words: UInt64Array, others: UInt64Array, s: Index, width: uint64) -> None:
    """Copy the s-th counter, as words of eight registers."""
    for j in range(s * width, (s + U1) * width):
        words[j] = others[j]


@inlined
def _differ(words: UInt64Array, others: UInt64Array, s: Index, width: uint64) -> bool:
    # The loop does not end early, so LLVM can compare several words at a time.
    different = U0
    for j in range(s * width, (s + U1) * width):
        different |= words[j] ^ others[j]
    return bool(different != U0)


@inlined
def _size(counter: UInt8Array, scale: float, empty: Float64Array) -> float:
    """The estimated size of a ball: α_m · m² / (Σ 2^−M over the registers M > 0, and a term for the empty ones)."""
    total, zeros = U0, U0
    for j in range(U0, uint64(len(counter))):
        register = uint64(counter[j])
        total += U1 << (_TOP - register)
        if register == U0:
            zeros += U1
    return scale / (float64(total - (zeros << _TOP)) * _UNIT + empty[zeros])


@inlined
def _weight(step: uint64, inverse: bool) -> float:
    return 1.0 / float64(step) if inverse else float64(step)


@inlined
def _gather(
    counter: UInt8Array,
    i: Index,
    offsets: UInt64Array,
    nodes: UInt32Array,
    slots: UInt32Array,
    registers: UInt8Array,
    node_of: UInt32Array,
    key: uint64,
    shift: uint64,
) -> None:
    """Recompute the ball at index i from the balls of its neighbours, whose counters are in ``registers``."""
    m, last = uint64(len(counter)), uint64(len(nodes)) - U1
    for j in range(U0, m):
        counter[j] = 0
    _add(counter, _mapped(node_of, i), key, shift)
    for p in range(offsets[i], offsets[i + U1]):
        prefetch(slots, uint64(nodes[min(p + _AHEAD + _AHEAD, last)]))
        soon = uint64(slots[nodes[min(p + _AHEAD, last)]])
        prefetch(registers, soon * m)
        u = uint64(nodes[p])
        t = uint64(slots[u])
        if t == _NONE:
            _add(counter, _mapped(node_of, u), key, shift)
        else:
            _merge(counter, U0, registers, t * m, m)


@kernel(allocates=False)
def first_step(
    offsets: UInt64Array,
    nodes: UInt32Array,
    readers: UInt64Array,
    numbering: Numbering,
    low: uint64,
    high: uint64,
    balls: Balls,
    counting: Counting,
) -> tuple[uint64, uint64]:
    """Make the balls of one step at the indices in [low, high), in ``now``, ``ends`` and ``changed``.

    Their sizes are exact: 1, and 1 for each neighbour. Arguments and results are those of :func:`next_step`.
    """
    slots, now, next_, ends, changed, _, sums, sizes = balls
    node_of, reading_of, _ = numbering
    key, shift = counting.key, counting.shift
    m = U1 << (_64 - shift)
    k = uint64(len(now)) // m
    count, arcs = U0, U0
    changed[low >> _6 : (high + _63) >> _6] = U0
    for i in range(low, high):
        near = U0
        for p in range(offsets[i], offsets[i + U1]):
            if uint64(nodes[p]) != i:
                near += U1
        # The weight of the first step is 1 in both sums.
        sums[i] = float64(near)
        sizes[i] = float32(near + U1)
        s = uint64(slots[i])
        if s == _NONE:
            continue
        if s < k and near > U0:
            changed[i >> _6] |= U1 << (i & _63)
            count += U1
            row = _mapped(reading_of, i)
            arcs += readers[row + U1] - readers[row]
        counter = _counter(now, s, m) if s < k else _counter(ends, s - k, m)
        for j in range(U0, uint64(len(counter))):
            counter[j] = 0
        _add(counter, _mapped(node_of, i), key, shift)
        for p in range(offsets[i], offsets[i + U1]):
            _add(counter, _mapped(node_of, uint64(nodes[p])), key, shift)
        # A node with a self-loop only does not change, so both of its counters must be the same.
        if s < k and near == U0:
            for j in range(U0, uint64(len(counter))):
                next_[s * m + j] = counter[j]
    return count, arcs


@kernel(allocates=False)
def next_step(
    offsets: UInt64Array,
    nodes: UInt32Array,
    readers: UInt64Array,
    numbering: Numbering,
    low: uint64,
    high: uint64,
    step: uint64,
    balls: Balls,
    counting: Counting,
    scratch: UInt8Array,
) -> tuple[uint64, uint64]:
    """Make the balls of ``step`` steps at the indices in [low, high), in ``next``, ``ends`` and ``fresh``.

    Parameters
    ----------
    offsets, nodes : uint64[n + 1], uint32[arcs]
        The rows.
    readers : uint64[n + 1]
        The place of each node's row among the reversed arcs.
    numbering : Numbering
        See there.
    low, high : uint64
        The indices. No two calls at once may have an index in common, and ``low`` is a multiple of 64, so that they
        have no word of marks in common either.
    step : uint64
        The number of the step, from 2.
    balls, counting : Balls, Counting
        See there.
    scratch : uint8[m]
        Room for one counter.

    Returns
    -------
    uint64, uint64
        The number of counters that changed, and of the arcs to their readers.
    """
    slots, now, next_, ends, changed, fresh, sums, sizes = balls
    node_of, reading_of, _ = numbering
    key, shift, scale, empty, inverse = counting
    weight = _weight(step, inverse)
    m = uint64(len(scratch))
    k = uint64(len(now)) // m
    last = uint64(len(nodes)) - U1
    own_words, old_words, width = next_.view(uint64), now.view(uint64), m >> uint64(3)
    count, arcs = U0, U0
    fresh[low >> _6 : (high + _63) >> _6] = U0
    for i in range(low, high):
        start, stop = offsets[i], offsets[i + U1]
        if start == stop:
            continue
        s = uint64(slots[i])
        if s < k and _is_marked(changed, i):
            _copy(own_words, old_words, s, width)
        touched = False
        for p in range(start, stop):
            u = uint64(nodes[p])
            # A self-loop adds nothing.
            if s == _NONE:
                if _is_marked(changed, u) and u != i:
                    touched = True
                    break
                continue
            prefetch(slots, uint64(nodes[min(p + _AHEAD + _AHEAD, last)]))
            soon = uint64(nodes[min(p + _AHEAD, last)])
            if _is_marked(changed, soon):
                prefetch(now, uint64(slots[soon]) * m)
            if _is_marked(changed, u) and u != i:
                touched = True
                t = uint64(slots[u])
                if s < k:
                    _merge(next_, s * m, now, t * m, m)
                else:
                    _merge(ends, (s - k) * m, now, t * m, m)
        if not touched:
            continue
        if s < k:
            if _differ(own_words, old_words, s, width):
                fresh[i >> _6] |= U1 << (i & _63)
                count += U1
                row = _mapped(reading_of, i)
                arcs += readers[row + U1] - readers[row]
            size = _size(_counter(next_, s, m), scale, empty)
        elif s != _NONE:
            size = _size(_counter(ends, s - k, m), scale, empty)
        else:
            _gather(scratch, i, offsets, nodes, slots, now, node_of, key, shift)
            size = _size(scratch, scale, empty)
        # A size that is the same but for rounding adds nothing.
        if float32(size) != sizes[i]:
            sums[i] += weight * (size - sizes[i])
            sizes[i] = float32(size)
    return count, arcs


@kernel(allocates=False)
def few_steps(
    offsets: UInt64Array,
    nodes: UInt32Array,
    step: uint64,
    count: uint64,
    budget: uint64,
    balls: Balls,
    counting: Counting,
    scratch: UInt8Array,
    numbering: Numbering,
    readers: Readers,
    gains: Float64Array,
) -> tuple[uint64, uint64, uint64]:
    """Do the steps from ``step`` on while few balls change: each goes from the nodes that changed to their readers.

    Parameters
    ----------
    offsets, nodes : uint64[n + 1], uint32[arcs]
        The rows.
    step : uint64
        The number of the first step.
    count : uint64
        The number of nodes of ``readers.changed`` that changed in the step before. At most as many arcs as
        ``readers.reached`` has places may end at their readers.
    budget : uint64
        Stop when this many arcs were followed. A step counts as 64 arcs.
    balls, counting : Balls, Counting
        See there.
    scratch : uint8[m]
        Room for one counter.
    numbering, readers : Numbering, Readers
        See there.
    gains : float64[budget / 64 + 1]
        The growth of all balls in each step is written here.

    Returns
    -------
    uint64, uint64, uint64
        The number of the next step, the number of nodes that changed in the last step, and the number of arcs to their
        readers. If the number of steps is odd, ``now`` and ``next`` have changed places.
    """
    slots, now, next_, ends, changed, _, sums, sizes = balls
    key, shift, scale, empty, inverse = counting
    node_of, reading_of, index_of = numbering
    reading, reader, moved, reached, seen = readers
    m = uint64(len(scratch))
    k = uint64(len(now)) // m
    room = uint64(len(moved))
    arcs, done, first = U0, U0, step
    while count > U0 and arcs <= room and done <= budget:
        weight = _weight(step, inverse)
        own_words, old_words, width = next_.view(uint64), now.view(uint64), m >> uint64(3)
        # Both buffers of a node that changed are made equal before anything is added to them.
        for q in range(U0, count):
            u = uint64(moved[q])
            s = uint64(slots[u])
            _copy(own_words, old_words, s, width)
            changed[u >> _6] &= ~(U1 << (u & _63))
        done += _STEP
        num_reached, arcs = U0, U0
        for q in range(U0, count):
            u = uint64(moved[q])
            t = uint64(slots[u])
            row = _mapped(reading_of, u)
            done += reading[row + U1] - reading[row]
            for p in range(reading[row], reading[row + U1]):
                v = _mapped(index_of, uint64(reader[p]))
                if v == u:
                    continue
                s = uint64(slots[v])
                if s < k:
                    _merge(next_, s * m, now, t * m, m)
                elif s != _NONE:
                    _merge(ends, (s - k) * m, now, t * m, m)
                if not seen[v]:
                    seen[v] = True
                    reached[num_reached] = v
                    num_reached += U1
        count = U0
        gain = 0.0
        for q in range(U0, num_reached):
            v = uint64(reached[q])
            seen[v] = False
            s = uint64(slots[v])
            if s < k:
                if _differ(own_words, old_words, s, width):
                    changed[v >> _6] |= U1 << (v & _63)
                    moved[count] = v
                    count += U1
                    row = _mapped(reading_of, v)
                    arcs += reading[row + U1] - reading[row]
                size = _size(_counter(next_, s, m), scale, empty)
            elif s != _NONE:
                size = _size(_counter(ends, s - k, m), scale, empty)
            else:
                _gather(scratch, v, offsets, nodes, slots, now, node_of, key, shift)
                size = _size(scratch, scale, empty)
            if float32(size) != sizes[v]:
                sums[v] += weight * (size - sizes[v])
                gain += float64(float32(size)) - float64(sizes[v])
                sizes[v] = float32(size)
        gains[step - first] = gain
        now, next_ = next_, now
        step += U1
    return step, count, arcs
