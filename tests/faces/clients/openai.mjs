// OpenAI's JavaScript SDK: models, a chat whole and streamed, a response whole and streamed.
import OpenAI from "openai";

const { url, token, model } = JSON.parse(process.argv[2]);
const api = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
const ask = (content) => ({ model, messages: [{ role: "user", content }] });

const models = [];
for await (const one of api.models.list()) models.push(one.id);
const whole = (await api.chat.completions.create(ask("echo whole"))).choices[0].message.content;
let streamed = "";
for await (const part of await api.chat.completions.create({ ...ask("chunks 20"), stream: true }))
  streamed += part.choices[0]?.delta?.content ?? "";
const response = await api.responses.create({ model, input: "echo response" });
const next = await api.responses.create({ model, input: "recall", previous_response_id: response.id });
let events = "";
for await (const event of await api.responses.create({ model, input: "chunks 20", stream: true }))
  if (event.type === "response.output_text.delta") events += event.delta;
let refusal = 0;
await new OpenAI({ baseURL: `${url}/v1`, apiKey: "cf_wrong" }).models.list().catch((error) => (refusal = error.status));
console.log(
  JSON.stringify({ models, whole, streamed, response: response.output_text, next: next.output_text, events, refusal }),
);
