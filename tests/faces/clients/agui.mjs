// AG-UI's client for JavaScript: one run, and what its messages hold afterwards.
import { HttpAgent } from "@ag-ui/client";

const { url, token, session, prompt } = JSON.parse(process.argv[2]);
const agent = new HttpAgent({
  url: `${url}/sessions/${session}/ag-ui`,
  headers: { Authorization: `Bearer ${token}` },
});
agent.addMessage({ id: "m1", role: "user", content: prompt });
const kinds = [];
await agent.runAgent({ runId: "run-1" }, { onEvent: ({ event }) => void kinds.push(event.type) });
const said = agent.messages.filter((one) => one.role === "assistant").map((one) => one.content ?? "");
console.log(JSON.stringify({ kinds, text: said.join("") }));
