// @ts-check
// Places the turns of a session in lanes: the present line first, what was cut away beside it.

/**
 * @typedef {{turn_index: number, parent: number|null, cut: boolean, state: string, outcome: string|null, prompt: string,
 *   queued_at: number, forks: {session_id: string, title: string}[]}} TreeTurn
 * @typedef {{turn: TreeTurn, lane: number, row: number, parentRow: number|null, parentLane: number|null}} Node
 */

/**
 * A turn stays in its parent's lane if it is the one that goes on there; another child gets a lane of its own, which is
 * free again once its last turn was drawn.
 * @param {TreeTurn[]} turns ascending
 * @returns {{nodes: Node[], lanes: number}}
 */
export function placeTurns(turns) {
  /** @type {Map<number, Node>} */
  const placed = new Map();
  /** @type {Map<number, number>} */
  const heir = new Map();
  for (const turn of turns) {
    const parent = turn.parent ?? 0;
    if (!turn.cut || !heir.has(parent)) heir.set(parent, turn.turn_index);
  }
  /** @type {Map<number, number>} */
  const lastRow = new Map();
  for (let row = turns.length - 1; row >= 0; row -= 1) {
    const next = heir.get(turns[row].turn_index);
    lastRow.set(turns[row].turn_index, Math.max(row, next === undefined ? row : (lastRow.get(next) ?? row)));
  }
  /** @type {number[]} the last row that each lane is taken to */
  const taken = [-1];
  let lanes = 1;
  const allCut = turns.every((turn) => turn.cut);
  const nodes = turns.map((turn, row) => {
    const parent = placed.get(turn.parent ?? 0) ?? null;
    let lane = parent?.lane ?? 0;
    if (heir.get(turn.parent ?? 0) !== turn.turn_index || (!parent && turn.cut && !allCut)) {
      lane = 1;
      while ((taken[lane] ?? -1) >= row) lane += 1;
    }
    taken[lane] = Math.max(taken[lane] ?? -1, lastRow.get(turn.turn_index) ?? row);
    lanes = Math.max(lanes, lane + 1);
    const node = { turn, lane, row, parentRow: parent?.row ?? null, parentLane: parent?.lane ?? null };
    placed.set(turn.turn_index, node);
    return node;
  });
  return { nodes, lanes };
}

/**
 * How many turns an undo has to take so that `turn` is the last one left.
 * @param {TreeTurn[]} turns @param {TreeTurn} turn
 */
export function turnsAfter(turns, turn) {
  return turns.filter((one) => !one.cut && one.turn_index > turn.turn_index && one.state === "ended").length;
}

/**
 * Turns as `GET …/turns` gives them, for a server that has no tree: each follows the last one that was not cut.
 * @param {any[]} turns
 * @returns {TreeTurn[]}
 */
export function guessTree(turns) {
  let last = /** @type {number|null} */ (null);
  return turns.map((turn) => {
    const parent = last;
    if (!turn.cut) last = turn.turn_index;
    return { ...turn, parent, forks: [], prompt: String(turn.prompt ?? "").slice(0, 200) };
  });
}
