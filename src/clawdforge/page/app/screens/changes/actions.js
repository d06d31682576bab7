// @ts-check
// Asks what a turn changed in the workspace: the list, and one file's diff.
import { get } from "../../api/client.js";

/**
 * @typedef {{path: string, old_path: string|null, status: "added"|"modified"|"deleted"|"renamed", added: number, removed: number, binary: boolean}} Change
 * @typedef {{files: Change[], truncated: boolean, reason?: string|null}} Changes
 */

/** @param {string} id @param {number} turn @param {"turn"|"first"} base @param {AbortSignal} signal @returns {Promise<Changes>} */
export const loadChanges = (id, turn, base, signal) => get(`/sessions/${id}/turns/${turn}/changes`, { base }, signal);

/** @param {string} id @param {number} turn @param {"turn"|"first"} base @param {string} path @param {AbortSignal} signal */
export const loadDiff = (id, turn, base, path, signal) => get(`/sessions/${id}/turns/${turn}/changes`, { base, path }, signal);
