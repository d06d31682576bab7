// @ts-check
// The lines beside the turns: one piece of drawing for each row, so that a long tree costs what is seen of it.
// The newest turn stands on top, so each piece is drawn from below.
import { html } from "../../lib.js";

const STEP = 14;
const HEIGHT = 44;
const MOST_LANES = 8;

/** @param {number} lane */
const x = (lane) => 10 + Math.min(lane, MOST_LANES - 1) * STEP;

/**
 * Which lanes pass through each row, from the rows that they connect.
 * @param {import("./lanes.js").Node[]} nodes
 * @returns {{from: number, to: number, lane: number}[]}
 */
export function linesOf(nodes) {
  return nodes
    .filter((node) => node.parentRow !== null)
    .map((node) => ({ from: /** @type {number} */ (node.parentRow), to: node.row, lane: node.lane }));
}

/** @param {{node: import("./lanes.js").Node, lines: {from: number, to: number, lane: number}[], lanes: number}} props */
export function Piece({ node, lines, lanes }) {
  const width = x(lanes - 1) + 10;
  const through = lines.filter((line) => line.from < node.row && line.to > node.row);
  const down = lines.filter((line) => line.from === node.row);
  const bend = node.parentLane !== null && node.parentLane !== node.lane;
  return html`<svg class="piece" width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
    <g transform=${`translate(0 ${HEIGHT}) scale(1 -1)`}>
    ${through.map((line) => html`<path d=${`M${x(line.lane)} 0V${HEIGHT}`} />`)}
    ${node.parentRow !== null && html`<path d=${`M${x(node.lane)} 0V${HEIGHT / 2}`} />`}
    ${down.map((line) =>
      line.lane === node.lane
        ? html`<path d=${`M${x(node.lane)} ${HEIGHT / 2}V${HEIGHT}`} />`
        : html`<path d=${`M${x(node.lane)} ${HEIGHT / 2}C${x(node.lane)} ${HEIGHT - 6} ${x(line.lane)} ${HEIGHT / 2 + 6} ${x(line.lane)} ${HEIGHT}`} />`,
    )}
    <circle class=${`${node.turn.cut ? "hollow" : ""} ${node.turn.outcome || node.turn.state} ${bend ? "bend" : ""}`} cx=${x(node.lane)} cy=${HEIGHT / 2} r="4.5" />
    </g>
  </svg>`;
}
