// Numbers and elements as people read them. Text of the model is only ever set as text, never as HTML.

import { logarithm } from "./scaled.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a child that is text becomes text. */
export function make(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for pictures. */
export function draw(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** What is said beside, or in place of an answer. */
export function note(...parts) {
  return make("p", { class: "quiet" }, ...parts);
}

/** What a key does, by its name. */
export function onKey(event, acts) {
  if (!(event.key in acts)) return;
  event.preventDefault();
  acts[event.key]();
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** An integer as an exponent. */
function raised(power) {
  return [...String(power)].map((sign) => (sign === "-" ? "⁻" : SUPERSCRIPTS[sign])).join("");
}

/** The number with this decimal logarithm, in so many digits after the point: 3.1·10⁻⁷. */
function scientific(ten, digits) {
  let power = Math.floor(ten), mantissa = (10 ** (ten - power)).toFixed(digits);
  if (Number(mantissa) >= 10) [power, mantissa] = [power + 1, (1).toFixed(digits)];
  return `${mantissa}·10${raised(power)}`;
}

/** A probability in a few digits: 0.4213, 3.1·10⁻⁷. */
export function probabilityText(p, digits = 4) {
  if (Number.isNaN(p)) return "–";
  if (p === 0) return "0";
  if (Math.abs(p) >= 1e-3) return p === 1 ? "1" : p > 1 - 0.5 * 10 ** -digits && p < 1 ? `>${(1 - 10 ** -digits).toFixed(digits)}` : p.toFixed(digits);
  return (p < 0 ? "−" : "") + scientific(Math.log10(Math.abs(p)), 1);
}

/** A scaled number in a few digits, however small or large. */
export function scaledText(number, digits = 4) {
  if (number.m === 0) return "0";
  const ten = logarithm({ m: Math.abs(number.m), e: number.e }) / Math.LN10, sign = number.m < 0 ? "−" : "";
  if (ten >= -3 && ten < 5) return sign + shortNumber(10 ** ten, digits);
  return sign + scientific(ten, Math.max(1, digits - 2));
}

/** A number in a few digits without zeros at its end. */
export function shortNumber(x, digits = 4) {
  return String(Number(x.toPrecision(digits)));
}

/** A marginal as text, with what is known of its error: {text, doubt}. */
export function marginalText(p, error, digits = 4) {
  if (Number.isNaN(p)) return { text: "–", doubt: false };
  if (error <= 1e-6 && p < 1 && p + error >= 1) return { text: "1", doubt: false };
  if (error <= 1e-6 * Math.abs(p) || error === 0) return { text: probabilityText(Math.min(1, Math.max(0, p)), digits), doubt: false };
  // absolutely certain, but so small that its digits are not
  if (error <= 1e-9) return { text: p > 1e-4 ? probabilityText(p, digits) : `<10${raised(Math.ceil(Math.log10(Math.abs(p) + error)))}`, doubt: false };
  return { text: `≈? ${probabilityText(Math.min(1, Math.max(0, p)), 2)}`, doubt: true };
}

/** 1 variable, 2 variables. */
export function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}
