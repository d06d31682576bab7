// The official TypeScript client of ACP, over pipes or a WebSocket: a prompt, its permission, and a load.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const { command, url, token, cwd, prompt } = JSON.parse(process.argv[2]);

class Socket extends WebSocket {
  constructor(where, _protocols, options) {
    super(where, { headers: options.headers });
  }
}

let child;
function open() {
  if (url) return createWebSocketStream(url, { headers: { Authorization: `Bearer ${token}` }, WebSocket: Socket });
  child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
  return ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

function talk(work) {
  const heard = { text: "", prompts: "", asked: [] };
  return client({ name: "tests" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      heard.asked.push(params.toolCall.title);
      return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
    })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") heard.text += update.content.text;
      if (update.sessionUpdate === "user_message_chunk") heard.prompts += update.content.text;
    })
    .connectWith(open(), async (agent) => {
      await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      return { ...(await work(agent)), heard };
    });
}

const first = await talk(async (agent) => {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const blocks = [{ type: "text", text: prompt }];
  const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt: blocks });
  return { sessionId, stopReason };
});
child?.kill();
const loaded = await talk(async (agent) => {
  await agent.request(methods.agent.session.load, { sessionId: first.sessionId, cwd, mcpServers: [] });
  return {};
});
child?.kill();
console.log(JSON.stringify({ first, loaded }));
process.exit(0);
