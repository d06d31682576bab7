// The transport of `useChat` in Vercel's AI SDK: a message sent, its parts, and a chat that nobody answers.
import { DefaultChatTransport, readUIMessageStream } from "ai";

const { url, token, session, prompt } = JSON.parse(process.argv[2]);
const transport = new DefaultChatTransport({
  api: `${url}/sessions/${session}/ui`,
  headers: { Authorization: `Bearer ${token}` },
});
const message = { id: "m1", role: "user", parts: [{ type: "text", text: prompt }] };
const stream = await transport.sendMessages({ trigger: "submit-message", chatId: "c", messages: [message] });
let last;
for await (const seen of readUIMessageStream({ stream })) last = seen;
const resumed = await transport.reconnectToStream({ chatId: "c" });
const text = last.parts.filter((part) => part.type === "text").map((part) => part.text);
console.log(JSON.stringify({ text: text.join(""), kinds: last.parts.map((part) => part.type), resumed }));
