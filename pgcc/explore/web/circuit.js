// The circuit, drawn as pgcc evaluates it: every sum, product and determinant with its value for the current query, and
// shaded by how much of the probability goes through it. Of a large circuit the top, or the neighbourhood of a node.

import { DET, LEAF, SUM, TIMES } from "./evaluator.js";
import { quotient } from "./scaled.js";
import { draw, scaledText, shortNumber } from "./text.js";

const RADIUS = 14, GAP = 18, STEP = 82, MOST_CHILDREN = 7, MOST_PARENTS = 6, LONGEST = 16;

/** What the drawing knows of a program: its nodes are the numbers of values. */
class Structure {
  constructor(program, names) {
    Object.assign(this, { program, names });
    const { op, start, args, length } = program, count = new Int32Array(length + 1);
    const each = (act) => {
      for (let i = 0; i < length; i++) {
        if (op[i] !== LEAF) for (let j = start[i] + (op[i] === DET ? 1 : 0); j < start[i + 1]; j++) act(i, args[j]);
      }
    };
    each((_, child) => count[child + 1]++);
    for (let i = 0; i < length; i++) count[i + 1] += count[i];
    this.parentStart = count.slice();
    this.parent = new Int32Array(count[length]);
    each((i, child) => (this.parent[count[child]++] = i));
  }

  /** [{node, weight}] */
  children(node) {
    const { op, start, args, firstWeight, weight, weightExponent } = this.program, first = firstWeight[node];
    if (op[node] === LEAF) return [];
    const found = Array.from(args.subarray(start[node] + (op[node] === DET ? 1 : 0), start[node + 1]), (child) => ({ node: child }));
    if (op[node] === DET) return found.filter((child, i) => i < found.length / 2 || !this.isComplement(child.node));
    if (op[node] === SUM) found.forEach((child, k) => (child.weight = { m: weight[first + k], e: weightExponent[first + k] }));
    return found;
  }

  parents(node) {
    return [...new Set(this.parent.subarray(this.parentStart[node], this.parentStart[node + 1]))].slice(0, MOST_PARENTS);
  }

  isComplement(node) {
    const { op, start, args, leaf, leafVariable } = this.program, l = args[start[node]];
    return op[node] === LEAF && leafVariable[l] >= 0 && leaf[3 * l + 1] === 0;
  }

  isLeaf(node) {
    return this.program.op[node] === LEAF;
  }

  /** [the sign in the drawing, the same in words] */
  label(node) {
    const { op, start, args, leaf, leafExponent, leafVariable, dets, firstWeight } = this.program;
    const count = start[node + 1] - start[node];
    if (op[node] === TIMES) return ["×", `product of ${count} factors`];
    if (op[node] === SUM) return ["+", `sum of ${firstWeight[node + 1] - firstWeight[node]} terms`];
    if (op[node] === DET) {
      const det = dets[args[start[node]]];
      return ["det", `determinant of ${det.rank} rows and ${det.children} children${det.size === null ? "" : `, of which ${det.size} are in`}`];
    }
    const l = args[start[node]], number = (at) => ({ m: leaf[at], e: leafExponent[at] });
    if (leafVariable[l] < 0) return [scaledText(number(3 * l), 3), `the number ${scaledText(number(3 * l))}`];
    const name = this.names[leafVariable[l]], a = number(3 * l), b = number(3 * l + 1);
    if (a.m === 0 && b.m === 1) return [name, `${name} is in`];
    if (b.m === 0 && a.m === 1) return [`not ${name}`, `${name} is out`];
    return [name, `${name}: ${scaledText(b)} if it is in, ${scaledText(a)} if it is out`];
  }
}

/** The children of a node; if not all are drawn, the terms of a sum that are largest in the current query. */
function largestFirst(structure, node, size) {
  const children = structure.children(node);
  if (children.length <= MOST_CHILDREN || !children[0].weight) return children;
  const log = ({ node: child, weight }) => Math.log2(Math.abs(weight.m)) + 64 * weight.e + size(child);
  return children.map((child) => [log(child), child]).sort((a, b) => b[0] - a[0]).map(([, child]) => child);
}

/** What is drawn around a node: its parents, and what is below it, level by level, up to so many nodes. */
function neighbourhood(structure, focus, most, size) {
  const nodes = [...structure.parents(focus), focus], edges = [], number = new Map(nodes.map((node, i) => [node, i]));
  const hidden = new Map(), fresh = [focus];
  for (let i = 0; i < nodes.length - 1; i++) {
    const link = structure.children(nodes[i]).find(({ node }) => node === focus);
    edges.push([i, nodes.length - 1, link?.weight]);
  }
  while (fresh.length) {
    const parent = fresh.shift(), children = largestFirst(structure, parent, size);
    let left = 0, shown = 0;
    for (const { node, weight } of children) {
      const known = number.has(node);
      if (!known && (shown >= MOST_CHILDREN || nodes.length >= most)) {
        left++;
        continue;
      }
      if (!known) {
        number.set(node, nodes.length);
        nodes.push(node);
        fresh.push(node);
        shown++;
      }
      if (number.get(node) >= nodes.indexOf(focus)) edges.push([number.get(parent), number.get(node), weight]);
    }
    if (left) hidden.set(parent, left);
  }
  return { nodes, edges, hidden };
}

/** Rows by longest paths, each in the order of Python (`places.py`); from the last one up, near to the nodes below. */
function placed({ place }, nodes, edges, widths) {
  const x = new Float64Array(nodes.length), depth = new Int32Array(nodes.length), rows = [];
  for (const i of [...nodes.keys()].sort((a, b) => nodes[b] - nodes[a])) { // parents have larger numbers
    (rows[depth[i]] ??= []).push(i);
    for (const [parent, child] of edges) if (parent === i) depth[child] = Math.max(depth[child], depth[i] + 1);
  }
  for (const row of rows) row.sort((a, b) => place[nodes[a]] - place[nodes[b]]);
  for (const row of rows.toReversed()) {
    let end = -Infinity, off = 0;
    for (const i of row) {
      const below = edges.filter(([parent]) => parent === i).map(([, child]) => x[child]);
      const wanted = below.length ? below.reduce((sum, at) => sum + at, 0) / below.length : Math.max(0, end);
      x[i] = Math.max(wanted, end + widths[i] / 2);
      off += (x[i] - wanted) / row.length;
      end = x[i] + widths[i] / 2 + GAP;
    }
    for (const i of row) x[i] -= off;
  }
  const left = Math.min(...widths.map((width, i) => x[i] - width / 2)), right = Math.max(...widths.map((width, i) => x[i] + width / 2));
  return { x: x.map((at) => at - left), y: [...depth].map((row) => row * STEP), width: right - left, height: (rows.length - 1) * STEP };
}

export class CircuitView {
  /** evaluator: one that has answered a query, whose values are shown. */
  constructor(parts, evaluator, names, sizes) {
    Object.assign(this, parts); // canvas, text, detail, top, smaller, larger, fit
    const { program } = evaluator;
    this.evaluator = evaluator;
    this.structure = new Structure(program, names);
    this.program = program;
    this.sizes = sizes;
    this.top.addEventListener("click", () => this.show(program.root));
    this.smaller.addEventListener("click", () => this.zoom(1.3));
    this.larger.addEventListener("click", () => this.zoom(1 / 1.3));
    this.fit.addEventListener("click", () => this.fitAll(true));
    this.measure();
    addEventListener("resize", () => {
      const before = this.wide;
      this.measure();
      if (this.wide !== before) this.show(this.focus);
    });
    this.show(program.root);
  }

  /** The width is measured once: to ask for it after every change would have the page laid out every time. */
  measure() {
    this.wide = this.canvas.clientWidth || 800;
  }

  /** What is drawn around a node. */
  around(focus) {
    const most = this.wide < 560 ? 22 : 48;
    return neighbourhood(this.structure, focus, most, (node) => {
      const { m, e } = this.evaluator.values.at(node);
      return Math.log2(Math.abs(m)) + 64 * e;
    });
  }

  show(focus, found = this.around(focus)) {
    this.focus = focus;
    const { nodes, edges, hidden } = found;
    const labels = nodes.map((node) => this.structure.label(node));
    const short = labels.map(([sign]) => (sign.length > LONGEST ? `${sign.slice(0, LONGEST - 1)}…` : sign));
    const widths = nodes.map((node, i) => (this.structure.isLeaf(node) || short[i].length > 1 ? Math.max(2 * RADIUS, 7 * short[i].length + 14) : 2 * RADIUS));
    const places = placed(this.program, nodes, edges, widths);
    this.drawn = { nodes, edges, labels, widths, ...places };
    this.svg = draw("svg", { role: "group", "aria-label": "Circuit: arrow keys follow its edges, Enter shows the neighbourhood of a node, plus and minus zoom" });
    this.svg.append(...edges.map((edge) => this.wire(edge)));
    this.marks = nodes.map((node, i) => this.mark(node, i, short[i], labels[i][1], widths[i], hidden.get(node) ?? 0));
    this.svg.append(...this.marks.map((mark) => mark.group));
    this.high = Math.max(200, Math.min(0.46 * innerHeight, 520, 1.15 * places.height + 110));
    this.svg.style.height = `${this.high}px`;
    this.canvas.replaceChildren(this.svg);
    this.top.hidden = focus === this.program.root;
    this.partial = hidden.size > 0;
    const whole = !this.partial && focus === this.program.root;
    const { nodes: all, edges: links } = this.sizes, size = `${all.toLocaleString("en")} nodes, ${links.toLocaleString("en")} edges`;
    this.text.textContent = whole ? size : `${size}: ${focus === this.program.root ? "the top" : "around a node"}; click a node to go there`;
    this.detail.textContent = "";
    this.listen();
    this.fitAll(false);
    this.update();
  }

  wire([parent, child, weight]) {
    const { x, y, edges } = this.drawn, x0 = x[parent], y0 = y[parent] + RADIUS + 14, x1 = x[child], y1 = y[child] - RADIUS;
    const middle = (y0 + y1) / 2, group = draw("g", {});
    group.append(draw("path", { class: weight?.m < 0 ? "wire negative" : "wire", d: `M${x0} ${y0}C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}` }));
    if (weight && edges.length <= 90 && !(weight.m === 1 && weight.e === 0)) {
      group.append(draw("text", { class: "weight", x: x0 + (x1 - x0) * 0.9, y: y0 + (y1 - y0) * 0.75 + 3 }, scaledText(weight, 3)));
    }
    return group;
  }

  mark(node, i, sign, words, width, hidden) {
    const { x, y } = this.drawn, cx = x[i], cy = y[i], wide = width / 2;
    const box = { x: cx - wide, y: cy - RADIUS, width, height: 2 * RADIUS, rx: this.structure.isLeaf(node) ? 7 : RADIUS };
    const flow = draw("rect", { class: "flow", ...box, opacity: 0 });
    const value = draw("text", { class: "value", x: cx, y: cy + RADIUS + 11 });
    const group = draw("g", { class: node === this.focus ? "node focus" : "node", tabindex: node === this.focus ? 0 : -1, role: "button", "data-node": String(node) },
      draw("title", {}, words), draw("rect", { class: "shape", ...box }), flow,
      draw("text", { class: this.structure.isLeaf(node) ? "sign leaf" : "sign", x: cx, y: cy + 4.5 }, sign), value);
    if (hidden) group.append(draw("text", { class: "more", x: cx + wide + 2, y: cy - RADIUS + 4 }, `+${hidden}`, draw("title", {}, `${hidden} more below: click the node`)));
    group.addEventListener("click", () => !this.moved && this.go(node));
    group.addEventListener("focus", () => this.tell(i));
    group.addEventListener("pointerenter", () => this.tell(i));
    return { group, flow, value };
  }

  /** Leaves have nothing below them: going there shows their parents. */
  go(node) {
    this.show(node);
    this.marks[this.drawn.nodes.indexOf(node)].group.focus();
  }

  /** How much of the probability goes through a node: value · adjoint / root. */
  share(node) {
    const { values, adjoints, needed, program } = this.evaluator, root = values.at(program.root);
    if (!(Math.abs(root.m) > root.x) || !needed[node]) return null;
    const v = values.at(node), a = adjoints.at(node);
    return quotient({ m: v.m * a.m, e: v.e + a.e, x: 0 }, { ...root, x: 0 }).value;
  }

  /** Show the query that the evaluator has answered last; in part, it may be another part. */
  follow() {
    if (this.partial) {
      const found = this.around(this.focus), known = new Set(this.drawn.nodes);
      if (!found.nodes.every((node) => known.has(node))) return this.show(this.focus, found);
    }
    return this.update();
  }

  /** Show its values. */
  update() {
    this.drawn.nodes.forEach((node, i) => {
      const value = this.evaluator.values.at(node), share = this.share(node), { group, flow, value: text } = this.marks[i];
      const size = scaledText(value, 3);
      text.textContent = value.m !== 0 && Math.abs(value.m) <= value.x * 1e6 ? `≈? ${size}` : size;
      flow.setAttribute("opacity", share === null ? 0 : 0.06 + 0.5 * Math.min(1, Math.abs(share)));
      const passing = share === null ? "" : `, share ${shortNumber(share, 3)}`;
      group.setAttribute("aria-label", `${this.drawn.labels[i][1]}: value ${text.textContent}${passing}`);
    });
  }

  tell(i) {
    this.detail.textContent = this.marks[i].group.getAttribute("aria-label");
  }

  // -- moving about ---------------------------------------------------------------------------------------------

  listen() {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !svg.contains(document.activeElement)) return; // else the page scrolls
      event.preventDefault();
      this.zoom(1.0015 ** event.deltaY, this.point(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.clientX, y: event.clientY, view: { ...this.view } };
      this.moved = false;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!this.drag || !event.buttons) return;
      const scale = this.scale(), dx = (event.clientX - this.drag.x) * scale, dy = (event.clientY - this.drag.y) * scale;
      if (Math.hypot(dx, dy) > 5 * scale) this.moved = true;
      if (this.moved) this.look({ ...this.drag.view, x: this.drag.view.x - dx, y: this.drag.view.y - dy });
    });
    svg.addEventListener("pointerup", () => (this.drag = null));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const at = this.marks.findIndex(({ group }) => group === event.target);
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    const { edges, x, y } = this.drawn, layer = this.drawn.nodes.map((_, i) => i).filter((i) => y[i] === y[at]).sort((a, b) => x[a] - x[b]);
    const move = (to) => {
      if (to === undefined) return;
      this.marks[at].group.setAttribute("tabindex", -1);
      this.marks[to].group.setAttribute("tabindex", 0);
      this.marks[to].group.focus();
    };
    const acts = {
      ArrowDown: () => move(edges.find(([parent]) => parent === at)?.[1]),
      ArrowUp: () => move(edges.find(([, child]) => child === at)?.[0]),
      ArrowRight: () => move(layer[layer.indexOf(at) + 1]),
      ArrowLeft: () => move(layer[layer.indexOf(at) - 1]),
      Enter: () => this.go(this.drawn.nodes[at]),
      " ": () => this.go(this.drawn.nodes[at]),
      "+": () => this.zoom(1 / 1.3),
      "-": () => this.zoom(1.3),
      0: () => this.fitAll(true),
      Home: () => this.go(this.program.root),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** Units of the drawing in a pixel. */
  scale() {
    return Math.max(this.view.width / this.wide, this.view.height / this.high);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  zoom(factor, [px, py] = [0.5, 0.5]) {
    const { x, y, width, height } = this.view;
    if (width * factor > 60000 || width * factor < 40) return;
    this.look({ x: x + width * px * (1 - factor), y: y + height * py * (1 - factor), width: width * factor, height: height * factor });
  }

  look(view) {
    this.view = view;
    this.svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  }

  /** The whole drawing; at first not smaller than can be read, around its focus. */
  fitAll(whole) {
    const { width, height, x, y, nodes } = this.drawn, margin = 34;
    const { wide, high } = this;
    let scale = Math.max((width + 2 * margin) / wide, (height + 2 * margin) / high, 0.85);
    if (!whole) scale = Math.min(scale, 1.6);
    const w = wide * scale, h = high * scale, focus = nodes.indexOf(this.focus);
    const around = (size, view, at) => (size + 2 * margin <= view ? (size - view) / 2 : Math.max(-margin, Math.min(size + margin - view, at - view / 2)));
    this.look({ x: around(width, w, x[focus]), y: height + 2 * margin <= h ? (height - h) / 2 : Math.max(-margin, y[focus] - h / 3), width: w, height: h });
  }
}
