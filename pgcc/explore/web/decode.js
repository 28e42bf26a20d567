// The model that is written into the page: arrays of numbers (see packing.py) and what is said about them.

// The operations, by the numbers that contents.py writes.
export const LEAF = 0, SUM = 1, TIMES = 2, DET = 3;

const KINDS = { uint8: Uint8Array, int32: Int32Array, float64: Float64Array };

/** The arrays that `pack` wrote, by name. */
export async function unpack(packed) {
  const compressed = Uint8Array.from(atob(packed.bytes), (letter) => letter.charCodeAt(0));
  const data = await whole(new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate")));
  const found = {};
  let at = 0;
  for (const [name, kind, size] of packed.arrays) {
    const Kind = KINDS[kind], end = at + size * Kind.BYTES_PER_ELEMENT;
    found[name] = new Kind(data.buffer.slice(at, end));
    at = end;
  }
  return found;
}

/** All bytes of a stream. */
async function whole(stream) {
  const parts = [], reader = stream.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Where stretches of these lengths start, one after another, and where the last one ends. */
export function starts(lengths) {
  const found = new Int32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) found[i + 1] = found[i] + lengths[i];
  return found;
}

/** The program of a model: instruction i writes value i. Determinants have their matrices, column by column. */
export async function decodeProgram(packed, about) {
  const arrays = await unpack(packed);
  const columns = starts(arrays.columnLength);
  let next = 0;
  const matrix = (count) => {
    const start = columns.subarray(next, next + count + 1);
    next += count;
    return { start, row: arrays.row, entry: arrays.entry };
  };
  const dets = about.dets.map((det) => ({ ...det, m0: matrix(det.rank), u: matrix(det.children), v: matrix(det.children) }));
  const start = starts(arrays.start), { op, args } = arrays;
  return {
    ...arrays,
    start,
    /** The values that instruction i reads: its arguments, without the number of a leaf or of a determinant. */
    slots: (i) => args.subarray(op[i] === LEAF || op[i] === DET ? start[i] + 1 : start[i], start[i + 1]),
    firstWeight: starts(arrays.firstWeight),
    dets,
    root: about.root,
    positive: about.positive,
    variables: about.variables.length,
    length: arrays.op.length,
  };
}
