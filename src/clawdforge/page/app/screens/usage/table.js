// @ts-check
// The numbers under the plots: reported and estimated in columns of their own, never added.
import { html } from "../../lib.js";
import { sayCount, sayMoney, showHidden } from "../words.js";
import { sumNames } from "./sums.js";

/** @param {{rows: import("./sums.js").Row[], by: string, title: string}} props */
export function UsageTable({ rows, by, title }) {
  const lines = sumNames(rows, by);
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Numbers">
    <table class="numbers">
      <thead>
        <tr>
          <th rowspan="2" scope="col">${title}</th>
          <th rowspan="2" scope="col">Turns</th>
          <th colspan="4" scope="colgroup">Reported by agents</th>
          <th colspan="3" scope="colgroup">Estimated from the text</th>
        </tr>
        <tr>
          <th scope="col">Input</th><th scope="col">Cached</th><th scope="col">Output</th><th scope="col">Cost</th>
          <th scope="col">Input</th><th scope="col">Output</th><th scope="col">Cost</th>
        </tr>
      </thead>
      <tbody>
        ${lines.map(
          (line) => html`<tr key=${line.name}>
            <th scope="row">${showHidden(line.name)}</th>
            <td>${sayCount(line.turns)}</td>
            <td>${sayCount(line.reported.input_tokens)}</td>
            <td>${sayCount(line.reported.cached_tokens)}</td>
            <td>${sayCount(line.reported.output_tokens)}</td>
            <td>${sayMoney(line.reported.cost_usd)}</td>
            <td class="estimate">${sayCount(line.estimated.input_tokens)}</td>
            <td class="estimate">${sayCount(line.estimated.output_tokens)}</td>
            <td class="estimate">${sayMoney(line.estimated.cost_usd)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
