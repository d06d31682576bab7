-- A database of version 0.3.0, as a dump. `@DATA@` stands for the data folder.
--
-- Made by the program of that version: `clawdforge serve` on an empty folder, driven over HTTP, its agent the scripted
-- one of that version. Session `rich` said and did something of every kind: words with and without more beside them,
-- a thought, tools, a plan, a picture, an error, a question that was allowed, an undo. Session `cut` was in the middle
-- of its second turn ("think, tool, plan, echo, echo, hang") with a third one queued when the server got SIGKILL.
-- Then `.dump` of SQLite, with the bytes of events written as text.

PRAGMA writable_schema=ON;

BEGIN TRANSACTION;

-- Table  apps
CREATE TABLE apps (
    app_name            TEXT PRIMARY KEY,
    created_at          INTEGER NOT NULL,
    max_sessions        INTEGER,
    max_turns_in_flight INTEGER,
    max_bytes           INTEGER
) WITHOUT ROWID;
INSERT INTO apps VALUES('crash',1794786021665639,NULL,NULL,NULL);
INSERT INTO apps VALUES('local',1794786020952038,NULL,NULL,NULL);

-- Table  events
CREATE TABLE events (
    session_id TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    turn       INTEGER,
    type       TEXT NOT NULL,
    by_agent   INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (session_id, seq)
);
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',1,NULL,'session.created',0,CAST('{"seq":1,"ts":"2026-11-15T23:40:21.713904Z","turn":null,"type":"session.created","agent":"scripted","model":null,"cwd":"@DATA@/workspaces/a0b87368-8159-40ce-8cc7-ad1657791458","title":"rich","meta":{"a":1}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',2,1,'turn.queued',0,CAST('{"seq":2,"ts":"2026-11-15T23:40:21.739116Z","turn":1,"type":"turn.queued","prompt":"echo hello","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',3,1,'turn.started',0,CAST('{"seq":3,"ts":"2026-11-15T23:40:21.739116Z","turn":1,"type":"turn.started","message":1}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',4,NULL,'commands',1,CAST('{"seq":4,"ts":"2026-11-15T23:40:21.924700Z","turn":null,"type":"commands","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"recall","description":"the prompts it remembers, as a JSON list; `recall all`: every message"},{"name":"count","description":"`turn=n`: the number of prompts it remembers, this one too"},{"name":"summary","description":"a summary of what it remembers, always the same for the same memory"}],"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"recall","description":"the prompts it remembers, as a JSON list; `recall all`: every message"},{"name":"count","description":"`turn=n`: the number of prompts it remembers, this one too"},{"name":"summary","description":"a summary of what it remembers, always the same for the same memory"}]}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',5,NULL,'context.started',0,CAST('{"seq":5,"ts":"2026-11-15T23:40:21.925931Z","turn":null,"type":"context.started","number":1,"how":"new","agent":"scripted"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',6,1,'text',1,CAST('{"seq":6,"ts":"2026-11-15T23:40:21.934393Z","turn":1,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}},"content":"hello"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',7,1,'response',1,CAST('{"seq":7,"ts":"2026-11-15T23:40:21.934444Z","turn":1,"type":"response","jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"cachedReadTokens":0,"totalTokens":5}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',8,1,'turn.ended',0,CAST('{"seq":8,"ts":"2026-11-15T23:40:21.934667Z","turn":1,"type":"turn.ended","outcome":"completed","stop_reason":"end_turn","error":null,"code":null,"usage":{"input_tokens":3,"output_tokens":2,"cached_tokens":0,"total_tokens":5,"cost_usd":null,"estimated":false,"cost_estimated":false},"duration_ms":195,"message":2}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',9,2,'turn.queued',0,CAST('{"seq":9,"ts":"2026-11-15T23:40:21.957850Z","turn":2,"type":"turn.queued","prompt":"think Let me see.\ntool look 5\nplan read|think|write\nupdate {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"with an id\"},\"messageId\":\"m1\",\"_meta\":{\"n\":1}}\nupdate {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"image/png\"}}\nupdate {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"noted\",\"annotations\":{\"audience\":[\"user\"]}}}\nupdate {\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"as you said\"}}\nupdate {\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c9\",\"kind\":\"edit\",\"rawInput\":{},\"locations\":[{\"path\":\"/a\"}]}\nupdate {\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c9\",\"status\":\"failed\",\"rawOutput\":{\"error\":\"no\"}}\nusage-update 53000 200000\nmode plan\nnotice mind this\nother sparkle\nunicode\necho done","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',10,2,'turn.started',0,CAST('{"seq":10,"ts":"2026-11-15T23:40:21.957850Z","turn":2,"type":"turn.started","message":3}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',11,2,'thinking',1,CAST('{"seq":11,"ts":"2026-11-15T23:40:21.964076Z","turn":2,"type":"thinking","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me see."},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me see."}}},"content":"Let me see."}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',12,2,'tool_call',1,CAST('{"seq":12,"ts":"2026-11-15T23:40:21.964131Z","turn":2,"type":"tool_call","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call","toolCallId":"call_2_1","title":"look","kind":"other","status":"pending","rawInput":{"name":"look"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call","toolCallId":"call_2_1","title":"look","kind":"other","status":"pending","rawInput":{"name":"look"}}},"name":"look","args":{"name":"look"}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',13,2,'tool_update',1,CAST('{"seq":13,"ts":"2026-11-15T23:40:21.964152Z","turn":2,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"in_progress","sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"in_progress"}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',14,2,'tool_update',1,CAST('{"seq":14,"ts":"2026-11-15T23:40:21.967632Z","turn":2,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"look done"}}],"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"look done"}}]}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',15,2,'plan',1,CAST('{"seq":15,"ts":"2026-11-15T23:40:21.967670Z","turn":2,"type":"plan","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"plan","entries":[{"content":"read","priority":"medium","status":"pending"},{"content":"think","priority":"medium","status":"pending"},{"content":"write","priority":"medium","status":"pending"}],"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"plan","entries":[{"content":"read","priority":"medium","status":"pending"},{"content":"think","priority":"medium","status":"pending"},{"content":"write","priority":"medium","status":"pending"}]}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',16,2,'text',1,CAST('{"seq":16,"ts":"2026-11-15T23:40:21.967692Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"with an id"},"messageId":"m1","_meta":{"n":1},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"with an id"},"messageId":"m1","_meta":{"n":1}}},"content":"with an id"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',17,2,'text',1,CAST('{"seq":17,"ts":"2026-11-15T23:40:21.967708Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}},"content":""}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',18,2,'text',1,CAST('{"seq":18,"ts":"2026-11-15T23:40:21.967720Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"noted","annotations":{"audience":["user"]}},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"noted","annotations":{"audience":["user"]}}}},"content":"noted"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',19,2,'user',1,CAST('{"seq":19,"ts":"2026-11-15T23:40:21.967730Z","turn":2,"type":"user","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"as you said"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"as you said"}}},"content":"as you said"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',20,2,'tool_call',1,CAST('{"seq":20,"ts":"2026-11-15T23:40:21.967752Z","turn":2,"type":"tool_call","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call","toolCallId":"c9","kind":"edit","rawInput":{},"locations":[{"path":"/a"}],"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call","toolCallId":"c9","kind":"edit","rawInput":{},"locations":[{"path":"/a"}]}},"name":"edit","args":{}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',21,2,'tool_update',1,CAST('{"seq":21,"ts":"2026-11-15T23:40:21.967769Z","turn":2,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"c9","status":"failed","rawOutput":{"error":"no"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call_update","toolCallId":"c9","status":"failed","rawOutput":{"error":"no"}}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',22,2,'usage',1,CAST('{"seq":22,"ts":"2026-11-15T23:40:21.967780Z","turn":2,"type":"usage","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"usage_update","used":53000,"size":200000,"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"usage_update","used":53000,"size":200000}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',23,2,'mode',1,CAST('{"seq":23,"ts":"2026-11-15T23:40:21.967789Z","turn":2,"type":"mode","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"current_mode_update","currentModeId":"plan","sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"current_mode_update","currentModeId":"plan"}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',24,2,'notice',1,CAST('{"seq":24,"ts":"2026-11-15T23:40:21.967797Z","turn":2,"type":"notice","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"notice","level":"info","content":{"type":"text","text":"mind this"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"notice","level":"info","content":{"type":"text","text":"mind this"}}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',25,2,'other',1,CAST('{"seq":25,"ts":"2026-11-15T23:40:21.967806Z","turn":2,"type":"other","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"sparkle","note":"a kind that nobody knows","sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"sparkle","note":"a kind that nobody knows"}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',26,2,'text',1,CAST('{"seq":26,"ts":"2026-11-15T23:40:21.967815Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"zß水🌍 é שלום   \u0000 ﻿ 👩‍🚀 \\ \" \t end"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"zß水🌍 é שלום   \u0000 ﻿ 👩‍🚀 \\ \" \t end"}}},"content":"zß水🌍 é שלום   \u0000 ﻿ 👩‍🚀 \\ \" \t end"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',27,2,'text',1,CAST('{"seq":27,"ts":"2026-11-15T23:40:21.967827Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}},"content":"done"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',28,2,'response',1,CAST('{"seq":28,"ts":"2026-11-15T23:40:21.967845Z","turn":2,"type":"response","jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":202,"outputTokens":15,"cachedReadTokens":0,"totalTokens":217}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',29,2,'turn.ended',0,CAST('{"seq":29,"ts":"2026-11-15T23:40:21.968039Z","turn":2,"type":"turn.ended","outcome":"completed","stop_reason":"end_turn","error":null,"code":null,"usage":{"input_tokens":202,"output_tokens":15,"cached_tokens":0,"total_tokens":217,"cost_usd":null,"estimated":false,"cost_estimated":false},"duration_ms":10,"message":4}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',30,3,'turn.queued',0,CAST('{"seq":30,"ts":"2026-11-15T23:40:22.009074Z","turn":3,"type":"turn.queued","prompt":"error no credit","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',31,3,'turn.started',0,CAST('{"seq":31,"ts":"2026-11-15T23:40:22.009074Z","turn":3,"type":"turn.started","message":5}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',32,3,'response',1,CAST('{"seq":32,"ts":"2026-11-15T23:40:22.029538Z","turn":3,"type":"response","jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"no credit"}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',33,3,'turn.ended',0,CAST('{"seq":33,"ts":"2026-11-15T23:40:22.030039Z","turn":3,"type":"turn.ended","outcome":"failed","stop_reason":"error","error":"scripted: no credit","code":"agent_failed","usage":null,"duration_ms":20,"message":null}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',34,NULL,'session.changed',0,CAST('{"seq":34,"ts":"2026-11-15T23:40:22.050470Z","turn":null,"type":"session.changed","changes":{"permission_mode":"ask"}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',35,4,'turn.queued',0,CAST('{"seq":35,"ts":"2026-11-15T23:40:22.081108Z","turn":4,"type":"turn.queued","prompt":"ask Delete the moon","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',36,4,'turn.started',0,CAST('{"seq":36,"ts":"2026-11-15T23:40:22.081108Z","turn":4,"type":"turn.started","message":6}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',37,4,'tool_call',1,CAST('{"seq":37,"ts":"2026-11-15T23:40:22.097452Z","turn":4,"type":"tool_call","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call","toolCallId":"call_4_1","title":"Delete the moon","kind":"execute","status":"pending","sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call","toolCallId":"call_4_1","title":"Delete the moon","kind":"execute","status":"pending"}},"name":"Delete the moon","args":{}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',38,4,'permission.requested',0,CAST('{"seq":38,"ts":"2026-11-15T23:40:22.097787Z","turn":4,"type":"permission.requested","permission_id":"fc88aafb-beec-4392-8396-3b0c008a4c80","tool":"Delete the moon","kind":"execute","options":[{"optionId":"allow_once","kind":"allow_once","name":"Allow once"},{"optionId":"allow_always","kind":"allow_always","name":"Always allow"},{"optionId":"reject_once","kind":"reject_once","name":"Reject"},{"optionId":"reject_always","kind":"reject_always","name":"Always reject"}],"request":{"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","toolCall":{"toolCallId":"call_4_1","title":"Delete the moon","kind":"execute","status":"pending"},"options":[{"optionId":"allow_once","kind":"allow_once","name":"Allow once"},{"optionId":"allow_always","kind":"allow_always","name":"Always allow"},{"optionId":"reject_once","kind":"reject_once","name":"Reject"},{"optionId":"reject_always","kind":"reject_always","name":"Always reject"}]}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',39,4,'permission.decided',0,CAST('{"seq":39,"ts":"2026-11-15T23:40:22.140312Z","turn":4,"type":"permission.decided","permission_id":"fc88aafb-beec-4392-8396-3b0c008a4c80","tool":"Delete the moon","decision":"allow_once","by":"caller","reason":null}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',40,4,'tool_update',1,CAST('{"seq":40,"ts":"2026-11-15T23:40:22.189485Z","turn":4,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"call_4_1","status":"completed","sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_4_1","status":"completed"}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',41,4,'text',1,CAST('{"seq":41,"ts":"2026-11-15T23:40:22.189531Z","turn":4,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"permission: allow_once"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"permission: allow_once"}}},"content":"permission: allow_once"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',42,4,'response',1,CAST('{"seq":42,"ts":"2026-11-15T23:40:22.189569Z","turn":4,"type":"response","jsonrpc":"2.0","id":6,"result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":6,"cachedReadTokens":0,"totalTokens":11}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',43,4,'turn.ended',0,CAST('{"seq":43,"ts":"2026-11-15T23:40:22.195153Z","turn":4,"type":"turn.ended","outcome":"completed","stop_reason":"end_turn","error":null,"code":null,"usage":{"input_tokens":5,"output_tokens":6,"cached_tokens":0,"total_tokens":11,"cost_usd":null,"estimated":false,"cost_estimated":false},"duration_ms":114,"message":7}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',44,5,'turn.queued',0,CAST('{"seq":44,"ts":"2026-11-15T23:40:22.238164Z","turn":5,"type":"turn.queued","prompt":"echo to be undone","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',45,5,'turn.started',0,CAST('{"seq":45,"ts":"2026-11-15T23:40:22.238164Z","turn":5,"type":"turn.started","message":8}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',46,5,'text',1,CAST('{"seq":46,"ts":"2026-11-15T23:40:22.245283Z","turn":5,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"to be undone"},"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"to be undone"}}},"content":"to be undone"}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',47,5,'response',1,CAST('{"seq":47,"ts":"2026-11-15T23:40:22.245333Z","turn":5,"type":"response","jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":3,"cachedReadTokens":0,"totalTokens":8}}}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',48,5,'turn.ended',0,CAST('{"seq":48,"ts":"2026-11-15T23:40:22.245517Z","turn":5,"type":"turn.ended","outcome":"completed","stop_reason":"end_turn","error":null,"code":null,"usage":{"input_tokens":5,"output_tokens":3,"cached_tokens":0,"total_tokens":8,"cost_usd":null,"estimated":false,"cost_estimated":false},"duration_ms":7,"message":9}' AS BLOB));
INSERT INTO events VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',49,NULL,'history.cut',0,CAST('{"seq":49,"ts":"2026-11-15T23:40:22.291352Z","turn":null,"type":"history.cut","messages":[8,9],"turns":[5],"why":"undo","context":2}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',1,NULL,'session.created',0,CAST('{"seq":1,"ts":"2026-11-15T23:40:22.314189Z","turn":null,"type":"session.created","agent":"scripted","model":null,"cwd":"@DATA@/workspaces/6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b","title":"cut","meta":{}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',2,1,'turn.queued',0,CAST('{"seq":2,"ts":"2026-11-15T23:40:22.329066Z","turn":1,"type":"turn.queued","prompt":"echo first","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',3,1,'turn.started',0,CAST('{"seq":3,"ts":"2026-11-15T23:40:22.329066Z","turn":1,"type":"turn.started","message":1}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',4,NULL,'commands',1,CAST('{"seq":4,"ts":"2026-11-15T23:40:22.577726Z","turn":null,"type":"commands","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"recall","description":"the prompts it remembers, as a JSON list; `recall all`: every message"},{"name":"count","description":"`turn=n`: the number of prompts it remembers, this one too"},{"name":"summary","description":"a summary of what it remembers, always the same for the same memory"}],"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"recall","description":"the prompts it remembers, as a JSON list; `recall all`: every message"},{"name":"count","description":"`turn=n`: the number of prompts it remembers, this one too"},{"name":"summary","description":"a summary of what it remembers, always the same for the same memory"}]}}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',5,NULL,'context.started',0,CAST('{"seq":5,"ts":"2026-11-15T23:40:22.578107Z","turn":null,"type":"context.started","number":1,"how":"new","agent":"scripted"}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',6,1,'text',1,CAST('{"seq":6,"ts":"2026-11-15T23:40:22.594523Z","turn":1,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"first"},"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"first"}}},"content":"first"}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',7,1,'response',1,CAST('{"seq":7,"ts":"2026-11-15T23:40:22.594565Z","turn":1,"type":"response","jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"cachedReadTokens":0,"totalTokens":5}}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',8,1,'turn.ended',0,CAST('{"seq":8,"ts":"2026-11-15T23:40:22.594723Z","turn":1,"type":"turn.ended","outcome":"completed","stop_reason":"end_turn","error":null,"code":null,"usage":{"input_tokens":3,"output_tokens":2,"cached_tokens":0,"total_tokens":5,"cost_usd":null,"estimated":false,"cost_estimated":false},"duration_ms":265,"message":2}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',9,2,'turn.queued',0,CAST('{"seq":9,"ts":"2026-11-15T23:40:22.629426Z","turn":2,"type":"turn.queued","prompt":"think Hm.\ntool look 5\nplan a|b\necho one half, \necho then the other\nhang","files":[],"if_busy":"queue"}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',10,2,'turn.started',0,CAST('{"seq":10,"ts":"2026-11-15T23:40:22.629426Z","turn":2,"type":"turn.started","message":3}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',11,2,'thinking',1,CAST('{"seq":11,"ts":"2026-11-15T23:40:22.635287Z","turn":2,"type":"thinking","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm."},"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm."}}},"content":"Hm."}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',12,2,'tool_call',1,CAST('{"seq":12,"ts":"2026-11-15T23:40:22.636890Z","turn":2,"type":"tool_call","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call","toolCallId":"call_2_1","title":"look","kind":"other","status":"pending","rawInput":{"name":"look"},"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"tool_call","toolCallId":"call_2_1","title":"look","kind":"other","status":"pending","rawInput":{"name":"look"}}},"name":"look","args":{"name":"look"}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',13,2,'tool_update',1,CAST('{"seq":13,"ts":"2026-11-15T23:40:22.636936Z","turn":2,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"in_progress","sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"in_progress"}}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',14,2,'tool_update',1,CAST('{"seq":14,"ts":"2026-11-15T23:40:22.640308Z","turn":2,"type":"tool_update","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"look done"}}],"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_2_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"look done"}}]}}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',15,2,'plan',1,CAST('{"seq":15,"ts":"2026-11-15T23:40:22.640335Z","turn":2,"type":"plan","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"pending"},{"content":"b","priority":"medium","status":"pending"}],"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"pending"},{"content":"b","priority":"medium","status":"pending"}]}}}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',16,2,'text',1,CAST('{"seq":16,"ts":"2026-11-15T23:40:22.640349Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one half, "},"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one half, "}}},"content":"one half, "}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',17,2,'text',1,CAST('{"seq":17,"ts":"2026-11-15T23:40:22.640359Z","turn":2,"type":"text","jsonrpc":"2.0","method":"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"then the other"},"sessionId":"6925d4fe-0dc0-45d1-a054-8f0d7916002d","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"then the other"}}},"content":"then the other"}' AS BLOB));
INSERT INTO events VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',18,3,'turn.queued',0,CAST('{"seq":18,"ts":"2026-11-15T23:40:22.692473Z","turn":3,"type":"turn.queued","prompt":"echo queued","files":[],"if_busy":"queue"}' AS BLOB));

-- Table  files
CREATE TABLE files (
    file_token TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    path       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
-- Triggers and indices on  files
CREATE INDEX files_by_age ON files (created_at, file_token);
CREATE INDEX files_of_app ON files (app_name, size);

-- Table  message_ranges
CREATE TABLE message_ranges (
    number   INTEGER PRIMARY KEY,
    app_name TEXT NOT NULL UNIQUE
);
INSERT INTO message_ranges VALUES(1,'crash');

-- Table  messages
CREATE TABLE messages (
    id          INTEGER PRIMARY KEY,
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    role        TEXT NOT NULL,
    content     TEXT NOT NULL,
    ts          INTEGER NOT NULL,
    turn        INTEGER,
    thinking    TEXT NOT NULL DEFAULT '',
    tool_calls  TEXT NOT NULL DEFAULT '[]',
    plan        TEXT NOT NULL DEFAULT '[]',
    token_count INTEGER NOT NULL DEFAULT 0,
    is_summary  INTEGER NOT NULL DEFAULT 0,
    archived    INTEGER NOT NULL DEFAULT 0,
    cut         INTEGER NOT NULL DEFAULT 0,
    pending     INTEGER NOT NULL DEFAULT 0,
    truncated   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, seq)
);
INSERT INTO messages VALUES(1099511627777,'a0b87368-8159-40ce-8cc7-ad1657791458',1,'user','echo hello',1794786021739116,1,'','[]','[]',3,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627778,'a0b87368-8159-40ce-8cc7-ad1657791458',2,'assistant','hello',1794786021934667,1,'','[]','[]',2,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627779,'a0b87368-8159-40ce-8cc7-ad1657791458',3,'user','think Let me see.
tool look 5
plan read|think|write
update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"with an id"},"messageId":"m1","_meta":{"n":1}}
update {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}
update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"noted","annotations":{"audience":["user"]}}}
update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"as you said"}}
update {"sessionUpdate":"tool_call","toolCallId":"c9","kind":"edit","rawInput":{},"locations":[{"path":"/a"}]}
update {"sessionUpdate":"tool_call_update","toolCallId":"c9","status":"failed","rawOutput":{"error":"no"}}
usage-update 53000 200000
mode plan
notice mind this
other sparkle
unicode
echo done',1794786021957850,2,'','[]','[]',202,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627780,'a0b87368-8159-40ce-8cc7-ad1657791458',4,'assistant','with an idnotedzß水🌍 é שלום   '||X'00'||' ﻿ 👩‍🚀 \ " 	 enddone',1794786021968039,2,'Let me see.','[{"toolCallId":"call_2_1","title":"look","kind":"other","status":"completed","rawInput":{"name":"look"}},{"toolCallId":"c9","kind":"edit","rawInput":{},"locations":[{"path":"/a"}],"status":"failed","rawOutput":{"error":"no"}}]','[{"content":"read","priority":"medium","status":"pending"},{"content":"think","priority":"medium","status":"pending"},{"content":"write","priority":"medium","status":"pending"}]',22,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627781,'a0b87368-8159-40ce-8cc7-ad1657791458',5,'user','error no credit',1794786022009074,3,'','[]','[]',4,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627782,'a0b87368-8159-40ce-8cc7-ad1657791458',6,'user','ask Delete the moon',1794786022081108,4,'','[]','[]',5,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627783,'a0b87368-8159-40ce-8cc7-ad1657791458',7,'assistant','permission: allow_once',1794786022195153,4,'','[{"toolCallId":"call_4_1","title":"Delete the moon","kind":"execute","status":"completed"}]','[]',6,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627784,'a0b87368-8159-40ce-8cc7-ad1657791458',8,'user','echo to be undone',1794786022238164,5,'','[]','[]',5,0,0,1,0,0);
INSERT INTO messages VALUES(1099511627785,'a0b87368-8159-40ce-8cc7-ad1657791458',9,'assistant','to be undone',1794786022245517,5,'','[]','[]',3,0,0,1,0,0);
INSERT INTO messages VALUES(1099511627786,'6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',1,'user','echo first',1794786022329066,1,'','[]','[]',3,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627787,'6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',2,'assistant','first',1794786022594723,1,'','[]','[]',2,0,0,0,0,0);
INSERT INTO messages VALUES(1099511627788,'6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',3,'user','think Hm.
tool look 5
plan a|b
echo one half, 
echo then the other
hang',1794786022629426,2,'','[]','[]',18,0,0,0,1,0);
-- Triggers and indices on  messages
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    UPDATE sessions SET
        last_message = max(last_message, new.seq),
        message_count = message_count + (new.cut = 0 AND new.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0;
END;
CREATE INDEX messages_by_role ON messages (session_id, role, seq) WHERE cut = 0 AND archived = 0;
CREATE TRIGGER messages_changed AFTER UPDATE OF content, cut, archived ON messages
WHEN old.content <> new.content OR old.cut <> new.cut OR old.archived <> new.archived BEGIN
    UPDATE sessions SET message_count = message_count
        + (new.cut = 0 AND new.archived = 0) - (old.cut = 0 AND old.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE old.cut = 0 AND old.archived = 0;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0;
END;
CREATE INDEX messages_cut ON messages (session_id, seq) WHERE cut = 1;
CREATE TRIGGER messages_removed AFTER DELETE ON messages WHEN old.cut = 0 AND old.archived = 0 BEGIN
    UPDATE sessions SET message_count = message_count - 1 WHERE session_id = old.session_id;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    VALUES ('delete', old.id, substr(old.content, 1, 100000));
END;
CREATE INDEX messages_said ON messages (session_id, seq) WHERE cut = 0 AND archived = 0 AND turn > 0;
CREATE INDEX messages_visible ON messages (session_id, seq) WHERE cut = 0 AND archived = 0;

-- Table  messages_fts
DELETE FROM sqlite_schema WHERE name='messages_fts' AND type='table';
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql) VALUES('table','messages_fts','messages_fts',0,'CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = ''message_texts'', content_rowid = ''id'',
    tokenize = ''unicode61 remove_diacritics 2'', prefix = ''3 4 5''
)');

-- Table  messages_fts_config
CREATE TABLE 'messages_fts_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO messages_fts_config VALUES('version',4);

-- Table  messages_fts_data
CREATE TABLE 'messages_fts_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO messages_fts_data VALUES(1,X'0A810D');
INSERT INTO messages_fts_data VALUES(10,X'00000000010E0E000E0101010201010301010401010501010601010701010801010901010A01010B01010C01010D01010E0101');
INSERT INTO messages_fts_data VALUES(137438953473,X'0000006905306563686FA080808080010202010568656C6C6FA080808080010203000431656368A080808080010202010368656CA0808080800102030005326563686FA080808080010202010468656C6CA08080808001020300063368656C6C6FA080808080010203040E0F0E0D0F0E');
INSERT INTO messages_fts_data VALUES(274877906945,X'00000040063068656C6C6FA08080808002020200043168656CA08080808002020200053268656C6CA08080808002020200063368656C6C6FA080808080020202040F0E0F');
INSERT INTO messages_fts_data VALUES(412316860417,X'00000A41023031A08080808003021D0106323030303030A08080808003025F010135A080808080030208020433303030A08080808003025E010161A08080808003024F020467656E74A08080808003060F130F03016BA08080808003022702016EA08080808003021703096E6F746174696F6E73A080808080030235020173A0808080800302410207756469656E6365A08080808003023601026339A0808080800304490F0203616C6CA0808080800304470E020468756E6BA080808080030811130F0F02066F6E74656E74A080808080030812130F0F010464617461A08080808003022602036F6E65A08080808003026901046563686FA0808080800302680203646974A08080808003024B020472726F72A08080808003025A01066661696C6564A08080808003025801026964A08080808003021802046D616765A0808080800304250601046B696E64A08080808003024A01036C6574A08080808003020302086F636174696F6E73A08080808003024D03026F6BA08080808003020701026D31A08080808003021A020165A08080808003020403057373616765A080808080030810130F0F08026964A08080808003021903027461A08080808003021B0207696D6574797065A08080808003022803026E64A08080808003026302036F6465A08080808003026001016EA08080808003021C02016FA08080808003025B0303746564A0808080800302340403696365A08080808003026201056F74686572A080808080030265010470617468A08080808003024E02036C616EA0808080800304095A02026E67A08080808003022A0108726177696E707574A08080808003024C04066F7574707574A0808080800302590203656164A08080808003020A010473616964A08080808003024302026565A080808080030205030B7373696F6E757064617465A080808080030C0E130F0F0E0E02067061726B6C65A08080808003026602057461747573A080808080030257010474657874A080808080030C14031F030E03020468696E6BA0808080800304020B040173A08080808003026402036F6F6CA080808080030606420E050663616C6C6964A0808080800304480F0203797065A080808080030813130F0F0107756E69636F6465A08080808003026702057064617465A08080808003100D130F0F0E0E060B020473616765A08080808003025C03026572A08080808003043705010477697468A080808080030216020472697465A08080808003020C0103796F75A080808080030242000431323030A08080808003025F0103353330A08080808003025E0103616765A08080808003060F130F03016BA08080808003022702026E6EA08080808003023502027564A080808080030236010363616CA0808080800304470E02026875A080808080030811130F0F02026F6EA080808080030812130F0F0103646174A08080808003022602026F6EA0808080800302690103656368A08080808003026802026469A08080808003024B02027272A08080808003025A0103666169A0808080800302580103696D61A0808080800304250601036B696EA08080808003024A01036C6574A08080808003020302026F63A08080808003024D03016FA08080808003020701036D6573A080808080030A100B0A0F0F030174A08080808003021B0202696DA08080808003022803016EA08080808003026302026F64A08080808003026001036E6F74A0808080800304343001036F7468A0808080800302650103706174A08080808003024E02026C61A0808080800304095A02026E67A08080808003022A0103726177A08080808003044C0F02026561A08080808003020A0103736169A08080808003024302026565A080808080030205030173A080808080030C0E130F0F0E0E02027061A08080808003026602027461A0808080800302570103746578A080808080030C14031F030E0302026869A0808080800306020B5B02026F6FA080808080030A0642040C0502027970A080808080030813130F0F0103756E69A08080808003026702027064A08080808003100D130F0F0E0E060B02027361A08080808003025C030165A080808080030437050103776974A08080808003021602027269A08080808003020C0103796F75A08080808003024200053232303030A08080808003025F010435333030A08080808003025E01046167656EA08080808003060F130F02036E6E6FA0808080800302350203756469A080808080030236010463616C6CA0808080800304470E020368756EA080808080030811130F0F02036F6E74A080808080030812130F0F010464617461A08080808003022602036F6E65A08080808003026901046563686FA0808080800302680203646974A08080808003024B020372726FA08080808003025A01046661696CA0808080800302580104696D6167A0808080800304250601046B696E64A08080808003024A01046C6F6361A08080808003024D03026F6BA08080808003020701046D657373A080808080030A100B0A0F0F03027461A08080808003021B0203696D65A08080808003022803026E64A08080808003026302036F6465A08080808003026001046E6F7465A080808080030234040169A08080808003026201046F746865A080808080030265010470617468A08080808003024E02036C616EA0808080800304095A010472617769A08080808003024C04016FA0808080800302590203656164A08080808003020A010473616964A0808080800302430203657373A080808080030C0E130F0F0E0E0203706172A0808080800302660203746174A080808080030257010474657874A080808080030C14031F030E03020368696EA0808080800304020B040173A08080808003026402036F6F6CA080808080030A0642040C050203797065A080808080030813130F0F0104756E6963A0808080800302670203706461A08080808003100D130F0F0E0E060B0203736167A08080808003025C03026572A08080808003043705010477697468A0808080800302160203726974A08080808003020C0006333230303030A08080808003025F01053533303030A08080808003025E01056167656E74A08080808003060F130F02046E6E6F74A080808080030235020475646965A08080808003023601056368756E6BA080808080030811130F0F02046F6E7465A080808080030812130F0F01056572726F72A08080808003025A01056661696C65A0808080800302580105696D616765A0808080800304250601056C6F636174A08080808003024D01056D65737361A080808080030A100B0A0F0F0204696D6574A08080808003022801056E6F746564A08080808003023404026963A08080808003026201056F74686572A0808080800302650105726177696EA08080808003024C04026F75A08080808003025901057365737369A080808080030C0E130F0F0E0E02047061726BA080808080030266020474617475A08080808003025701057468696E6BA0808080800304020B02046F6F6C63A0808080800304480F0105756E69636FA080808080030267020470646174A08080808003100D130F0F0E0E060B020473616765A08080808003025C01057772697465A08080808003020C040B100B0E0B100B0B130B110D0E11130E0D0E0D0E100C0F0E0D120C0C0B120C0C110C0D0B0B0D0D0F0E0E0C12100D0E0C1A100F130F0B0F111011160E0D0E0E0D0E0D0F0B0C0C0E0F0F0D0C0D0C0C0D0E0D0D0C0B110B0C0B0C0E0D0D0D0C0E0C0D0C100C0C120E100F0D130C0C0D0C0D0F0E100D0D0F10100E0D0E0D0D0E0F0E0E0C120C0D0C0D0E0B0E0E0E0E0B0D0E120D0D130E0B11100E140D0D0E0D100F110E0E12110F0F100F130E0F0C0F0F0C140E0E100F0F150E');
INSERT INTO messages_fts_data VALUES(549755813889,X'000000BC0330616EA080808080040203010165A080808080040205010D69646E6F7465647AC39FE6B0B4A080808080040204010477697468A0808080800402020108D7A9D79CD795D79DA08080808004020600043169646EA0808080800402040103776974A0808080800402020106D7A9D79CD795A08080808004020600053269646E6FA080808080040204010477697468A0808080800402020108D7A9D79CD795D79DA08080808004020600063369646E6F74A080808080040204040C0B170E120E0D100F0E12');
INSERT INTO messages_fts_data VALUES(687194767361,X'000000860730637265646974A08080808005020401056572726F72A08080808005020201026E6FA080808080050203000431637265A0808080800502040103657272A08080808005020200053263726564A08080808005020401046572726FA0808080800502020006336372656469A08080808005020401056572726F72A08080808005020204100F0C0E0D0F0E10');
INSERT INTO messages_fts_data VALUES(824633720833,X'0000009E043061736BA080808080060202010664656C657465A08080808006020301046D6F6F6EA0808080800602050103746865A08080808006020400043161736BA080808080060202010364656CA08080808006020301036D6F6FA0808080800602050103746865A08080808006020400053264656C65A08080808006020301046D6F6F6EA08080808006020500063364656C6574A080808080060203040D100E0D0E0D0D0D0F0E');
INSERT INTO messages_fts_data VALUES(962072674305,X'000000A70630616C6C6F77A08080808007020301046F6E6365A080808080070204010A7065726D697373696F6EA080808080070202000431616C6CA08080808007020301036F6E63A0808080800702040103706572A080808080070202000532616C6C6FA08080808007020301046F6E6365A08080808007020401047065726DA080808080070202000633616C6C6F77A08080808007020301057065726D69A080808080070202040F0E140E0D0D0F0E0E10');
INSERT INTO messages_fts_data VALUES(1099511627777,X'0000008203306265A08080808008020401046563686FA0808080800802020102746FA0808080800802030106756E646F6E65A080808080080205000431656368A0808080800802020103756E64A0808080800802050005326563686FA0808080800802020104756E646FA080808080080205000633756E646F6EA080808080080205040C0E0C100E0D0F0E');
INSERT INTO messages_fts_data VALUES(1236950581249,X'0000005903306265A0808080800902030102746FA0808080800902020106756E646F6E65A080808080090204000431756E64A080808080090204000532756E646FA080808080090204000633756E646F6EA080808080090204040C0C100E0F');
INSERT INTO messages_fts_data VALUES(1374389534721,X'0000007903306265A080808080080101046563686FA08080808008010102746FA08080808008010106756E646F6E65A0808080800801000431656368A08080808008010103756E64A08080808008010005326563686FA08080808008010104756E646FA0808080800801000633756E646F6EA0808080800801040B0D0B0F0D0C0E0D');
INSERT INTO messages_fts_data VALUES(1511828488193,X'0000005303306265A08080808009010102746FA08080808009010106756E646F6E65A0808080800901000431756E64A0808080800901000532756E646FA0808080800901000633756E646F6EA0808080800901040B0B0F0D0E');
INSERT INTO messages_fts_data VALUES(1649267441665,X'0000006905306563686FA0808080800A020201056669727374A0808080800A0203000431656368A0808080800A02020103666972A0808080800A02030005326563686FA0808080800A0202010466697273A0808080800A02030006336669727374A0808080800A0203040E0F0E0D0F0E');
INSERT INTO messages_fts_data VALUES(1786706395137,X'0000004006306669727374A0808080800B0202000431666972A0808080800B020200053266697273A0808080800B02020006336669727374A0808080800B0202040F0E0F');
INSERT INTO messages_fts_data VALUES(1924145348609,X'000001DB023035A0808080800C0206010161A0808080800C0208010162A0808080800C020901046563686FA0808080800C040A05010468616C66A0808080800C020C03026E67A0808080800C021102016DA0808080800C020301046C6F6F6BA0808080800C020501036F6E65A0808080800C020B020474686572A0808080800C02100104706C616EA0808080800C02070103746865A0808080800C020F04016EA0808080800C020E0303696E6BA0808080800C020202036F6F6CA0808080800C0204000431656368A0808080800C040A05010368616CA0808080800C020C03016EA0808080800C021101036C6F6FA0808080800C020501036F6E65A0808080800C020B02027468A0808080800C02100103706C61A0808080800C02070103746865A0808080800C040E03030169A0808080800C020202026F6FA0808080800C02040005326563686FA0808080800C040A05010468616C66A0808080800C020C03026E67A0808080800C021101046C6F6F6BA0808080800C020501046F746865A0808080800C02100104706C616EA0808080800C020701047468656EA0808080800C020E0302696EA0808080800C020202036F6F6CA0808080800C02040006336F74686572A0808080800C021001057468696E6BA0808080800C0202040B0B0B0F0E0C0B0E0D0E0E0D0B0D0D0F0D0B0D0D0C0D0E0B0C100E0C0E0E0E0E0C0D10');

-- Table  messages_fts_docsize
CREATE TABLE 'messages_fts_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO messages_fts_docsize VALUES(1099511627777,X'02');
INSERT INTO messages_fts_docsize VALUES(1099511627778,X'01');
INSERT INTO messages_fts_docsize VALUES(1099511627779,X'68');
INSERT INTO messages_fts_docsize VALUES(1099511627780,X'05');
INSERT INTO messages_fts_docsize VALUES(1099511627781,X'03');
INSERT INTO messages_fts_docsize VALUES(1099511627782,X'04');
INSERT INTO messages_fts_docsize VALUES(1099511627783,X'03');
INSERT INTO messages_fts_docsize VALUES(1099511627786,X'02');
INSERT INTO messages_fts_docsize VALUES(1099511627787,X'01');
INSERT INTO messages_fts_docsize VALUES(1099511627788,X'10');

-- Table  messages_fts_idx
CREATE TABLE 'messages_fts_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO messages_fts_idx VALUES(1,X'',2);
INSERT INTO messages_fts_idx VALUES(2,X'',2);
INSERT INTO messages_fts_idx VALUES(3,X'',2);
INSERT INTO messages_fts_idx VALUES(4,X'',2);
INSERT INTO messages_fts_idx VALUES(5,X'',2);
INSERT INTO messages_fts_idx VALUES(6,X'',2);
INSERT INTO messages_fts_idx VALUES(7,X'',2);
INSERT INTO messages_fts_idx VALUES(8,X'',2);
INSERT INTO messages_fts_idx VALUES(9,X'',2);
INSERT INTO messages_fts_idx VALUES(10,X'',2);
INSERT INTO messages_fts_idx VALUES(11,X'',2);
INSERT INTO messages_fts_idx VALUES(12,X'',2);
INSERT INTO messages_fts_idx VALUES(13,X'',2);
INSERT INTO messages_fts_idx VALUES(14,X'',2);

-- Table  nodes
CREATE TABLE nodes (
    node       TEXT PRIMARY KEY,
    url        TEXT,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- Table  permissions
CREATE TABLE permissions (
    permission_id TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL,
    turn_index    INTEGER NOT NULL,
    tool          TEXT NOT NULL,
    kind          TEXT,
    request       TEXT NOT NULL DEFAULT '{}',
    requested_at  INTEGER NOT NULL,
    options       TEXT NOT NULL DEFAULT '[]',
    state         TEXT NOT NULL DEFAULT 'pending',
    decision      TEXT,
    option_id     TEXT,
    reason        TEXT,
    decided_at    INTEGER
);
INSERT INTO permissions VALUES('fc88aafb-beec-4392-8396-3b0c008a4c80','a0b87368-8159-40ce-8cc7-ad1657791458',4,'Delete the moon','execute','{"sessionId":"f29a059b-792d-4702-a9d4-0e856783dd74","toolCall":{"toolCallId":"call_4_1","title":"Delete the moon","kind":"execute","status":"pending"},"options":[{"optionId":"allow_once","kind":"allow_once","name":"Allow once"},{"optionId":"allow_always","kind":"allow_always","name":"Always allow"},{"optionId":"reject_once","kind":"reject_once","name":"Reject"},{"optionId":"reject_always","kind":"reject_always","name":"Always reject"}]}',1794786022097787,'[{"optionId":"allow_once","kind":"allow_once","name":"Allow once"},{"optionId":"allow_always","kind":"allow_always","name":"Always allow"},{"optionId":"reject_once","kind":"reject_once","name":"Reject"},{"optionId":"reject_always","kind":"reject_always","name":"Always reject"}]','decided','allow_once','allow_once',NULL,1794786022140312);
-- Triggers and indices on  permissions
CREATE INDEX permissions_granted ON permissions (session_id, tool, kind) WHERE decision = 'allow_always';
CREATE INDEX permissions_of_session ON permissions (session_id, requested_at, permission_id);
CREATE INDEX permissions_pending ON permissions (session_id, requested_at, permission_id)
    WHERE state = 'pending';

-- Table  personas
CREATE TABLE personas (
    app_name        TEXT NOT NULL,
    name            TEXT NOT NULL,
    agent           TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    model           TEXT,
    permission_mode TEXT,
    instructions    TEXT,
    plan_mode       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, name)
);

-- Table  runs
CREATE TABLE runs (
    run_id      TEXT PRIMARY KEY,
    app_name    TEXT NOT NULL,
    model       TEXT,
    prompt      TEXT NOT NULL,
    ok          INTEGER NOT NULL,
    stop_reason TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    error       TEXT
);
-- Triggers and indices on  runs
CREATE INDEX runs_of_app ON runs (app_name, created_at);

-- Table  schema_migrations
CREATE TABLE schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);
INSERT INTO schema_migrations VALUES(1,'0001_init',1794786020674990);

-- Table  session_events
CREATE TABLE session_events (
    number     INTEGER PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT,
    event      TEXT NOT NULL,
    at         INTEGER NOT NULL,
    details    TEXT NOT NULL DEFAULT '{}',
    hash       TEXT NOT NULL
);
INSERT INTO session_events VALUES(1,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','create',1794786021713904,'{"agent":"scripted"}','f8c8c58535e5cca0d4287fe8ea0012af8febfd12e0ac75dac3bbf7bb90cddc6c');
INSERT INTO session_events VALUES(2,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','turn',1794786021739116,'{"turn":1}','6e58eefc167f0a722feac29a7dee627640441afee47b0c99b87b5872907ea1b7');
INSERT INTO session_events VALUES(3,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','turn',1794786021957850,'{"turn":2}','df21a66533c3c238ac223e417de6c4d03a6e87036529d8325da65bd957d290cc');
INSERT INTO session_events VALUES(4,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','turn',1794786022009074,'{"turn":3}','3a634a4087759cdd3ab72b6999669a3596b186721695f78c467fcb4100222821');
INSERT INTO session_events VALUES(5,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','turn',1794786022081108,'{"turn":4}','ebae8053cdfc10b83d369c9b628182eee508a090bfcdc77c40865292b9ccefad');
INSERT INTO session_events VALUES(6,'crash','a0b87368-8159-40ce-8cc7-ad1657791458','turn',1794786022238164,'{"turn":5}','db11d53096512e8e535e2ffb1bc20454c686245fa2ab01db4f46e4bd948c35c4');
INSERT INTO session_events VALUES(7,'crash','6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b','create',1794786022314189,'{"agent":"scripted"}','07926e526394dc61d823691094de15a95f51c3da86ef598f235fb8f8ef823446');
INSERT INTO session_events VALUES(8,'crash','6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b','turn',1794786022329066,'{"turn":1}','1a45196d47a13bd2a13981ac396316f251c7662f3030a0380a84b74aba003de6');
INSERT INTO session_events VALUES(9,'crash','6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b','turn',1794786022629426,'{"turn":2}','7da918365772bbf2ac8b67405f2680e9cbb458d9eb7492f137d2367884c8ed88');
-- Triggers and indices on  session_events
CREATE INDEX session_events_of_app ON session_events (app_name, number);

-- Table  sessions
CREATE TABLE sessions (
    session_id          TEXT PRIMARY KEY,
    app_name            TEXT NOT NULL,
    agent               TEXT NOT NULL,
    cwd                 TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    last_turn_at        INTEGER,
    closed_at           INTEGER,
    deleted_at          INTEGER,
    model               TEXT,
    persona             TEXT,
    instructions        TEXT,
    own_cwd             INTEGER NOT NULL DEFAULT 0,
    title               TEXT NOT NULL DEFAULT '',
    meta                TEXT NOT NULL DEFAULT '{}',
    labels              TEXT NOT NULL DEFAULT '[]',
    pinned              INTEGER NOT NULL DEFAULT 0,
    permission_mode     TEXT NOT NULL DEFAULT 'approve_all',
    on_interrupt        TEXT NOT NULL DEFAULT 'hold',
    retention           TEXT NOT NULL DEFAULT 'ttl',
    plan_mode           INTEGER NOT NULL DEFAULT 0,
    project_key         TEXT,
    parent_session_id   TEXT,
    forked_from         TEXT,
    depth               INTEGER NOT NULL DEFAULT 0,
    turn_count          INTEGER NOT NULL DEFAULT 0,
    last_turn           INTEGER NOT NULL DEFAULT 0,
    head                INTEGER NOT NULL DEFAULT 0,
    last_message        INTEGER NOT NULL DEFAULT 0,
    message_count       INTEGER NOT NULL DEFAULT 0,
    context             INTEGER NOT NULL DEFAULT 1,
    context_plan        TEXT NOT NULL DEFAULT 'new',
    agent_session_id    TEXT,
    files_plan          TEXT,
    redo                TEXT NOT NULL DEFAULT '[]',
    holder              TEXT,
    fence               INTEGER NOT NULL DEFAULT 0,
    total_input_tokens  INTEGER NOT NULL DEFAULT 0,
    total_output_tokens INTEGER NOT NULL DEFAULT 0,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    cached_tokens       INTEGER NOT NULL DEFAULT 0,
    cost_usd            REAL,
    estimated_cost_usd  REAL
);
INSERT INTO sessions VALUES('a0b87368-8159-40ce-8cc7-ad1657791458','crash','scripted','@DATA@/workspaces/a0b87368-8159-40ce-8cc7-ad1657791458',1794786021713904,1794786022296617,1794786022245517,NULL,NULL,NULL,NULL,NULL,1,'rich','{"a":1}','[]',0,'ask','hold','keep',0,NULL,NULL,NULL,0,5,5,49,9,7,2,'restore:4','f29a059b-792d-4702-a9d4-0e856783dd74',NULL,'[49]','ece21c1d-4557-4590-a0ea-c2290fd87087',5,219,33,215,26,0,NULL,NULL);
INSERT INTO sessions VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b','crash','scripted','@DATA@/workspaces/6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',1794786022314189,1794786022693020,1794786022629426,NULL,NULL,NULL,NULL,NULL,1,'cut','{}','[]',0,'approve_all','hold','keep',0,NULL,NULL,NULL,0,2,3,18,3,3,1,'load','6925d4fe-0dc0-45d1-a054-8f0d7916002d',NULL,'[]','ece21c1d-4557-4590-a0ea-c2290fd87087',2,21,2,3,2,0,NULL,NULL);
-- Triggers and indices on  sessions
CREATE INDEX sessions_capped ON sessions (app_name)
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_closed ON sessions (closed_at)
    WHERE retention = 'ttl' AND closed_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX sessions_idle ON sessions (coalesce(last_turn_at, created_at))
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_listed ON sessions (app_name, updated_at, session_id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_of_parent ON sessions (app_name, parent_session_id, updated_at, session_id)
    WHERE deleted_at IS NULL AND parent_session_id IS NOT NULL;
CREATE INDEX sessions_of_project ON sessions (app_name, project_key, updated_at, session_id)
    WHERE deleted_at IS NULL AND project_key IS NOT NULL;
CREATE INDEX sessions_of_workspace ON sessions (cwd) WHERE own_cwd = 1;
CREATE INDEX sessions_open ON sessions (app_name, updated_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NULL;

-- Table  tokens
CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    note       TEXT,
    expires_at INTEGER,
    revoked_at INTEGER
);
INSERT INTO tokens VALUES('ca89818d-89f6-4eec-bbfe-13dc8a4a051f','local',X'BA31CDEBFCEEFD128B04995F17BDF633892C3A2076A6DE56F304B2F09161E302',1794786020952038,NULL,NULL,NULL);
INSERT INTO tokens VALUES('a48aa8a8-ed56-4436-bfa6-0d04661fc3b1','crash',X'6B80526397BD137293E9AAE0A05A9ABCB214FD4C06E1D388913287225E876060',1794786021665639,NULL,NULL,NULL);
-- Triggers and indices on  tokens
CREATE INDEX tokens_of_app ON tokens (app_name, created_at, token_id);

-- Table  turn_files
CREATE TABLE turn_files (
    file_token TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    PRIMARY KEY (file_token, session_id, turn_index)
) WITHOUT ROWID;

-- Table  turns
CREATE TABLE turns (
    session_id   TEXT NOT NULL,
    turn_index   INTEGER NOT NULL,
    state        TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    queued_at    INTEGER NOT NULL,
    files        TEXT NOT NULL DEFAULT '[]',
    outcome      TEXT,
    stop_reason  TEXT,
    error        TEXT,
    code         TEXT,
    error_extra  TEXT NOT NULL DEFAULT '{}',
    key          TEXT,
    fingerprint  TEXT,
    retry_of     INTEGER,
    automatic    INTEGER NOT NULL DEFAULT 0,
    cut          INTEGER NOT NULL DEFAULT 0,
    timeout_secs REAL,
    if_busy      TEXT NOT NULL DEFAULT 'queue',
    context      INTEGER NOT NULL DEFAULT 1,
    started_at   INTEGER,
    ended_at     INTEGER,
    first_seq    INTEGER,
    last_seq     INTEGER,
    usage        TEXT,
    PRIMARY KEY (session_id, turn_index)
);
INSERT INTO turns VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',1,'ended','echo hello',1794786021739116,'[]','completed','end_turn',NULL,NULL,'{}',NULL,'64e5f13b569647322a7ff2b9b0623745c28da6c5834e954a577a77b84031906a',NULL,0,0,NULL,'queue',1,1794786021739116,1794786021934667,3,8,'{"input_tokens":3,"output_tokens":2,"cached_tokens":0,"total_tokens":5,"cost_usd":null,"estimated":false,"cost_estimated":false}');
INSERT INTO turns VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',2,'ended','think Let me see.
tool look 5
plan read|think|write
update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"with an id"},"messageId":"m1","_meta":{"n":1}}
update {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}
update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"noted","annotations":{"audience":["user"]}}}
update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"as you said"}}
update {"sessionUpdate":"tool_call","toolCallId":"c9","kind":"edit","rawInput":{},"locations":[{"path":"/a"}]}
update {"sessionUpdate":"tool_call_update","toolCallId":"c9","status":"failed","rawOutput":{"error":"no"}}
usage-update 53000 200000
mode plan
notice mind this
other sparkle
unicode
echo done',1794786021957850,'[]','completed','end_turn',NULL,NULL,'{}',NULL,'b98f2f80e9a51367c85f912a98c54f3133e72f13ce3008ffb40631776612c9ef',NULL,0,0,NULL,'queue',1,1794786021957850,1794786021968039,10,29,'{"input_tokens":202,"output_tokens":15,"cached_tokens":0,"total_tokens":217,"cost_usd":null,"estimated":false,"cost_estimated":false}');
INSERT INTO turns VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',3,'ended','error no credit',1794786022009074,'[]','failed','error','scripted: no credit','agent_failed','{"stop_reason":"error","stderr":""}',NULL,'4c8e7525c4f53f7b3b616568351cdc8481cc0011294575579b3b79e05d4d8c49',NULL,0,0,NULL,'queue',1,1794786022009074,1794786022030039,31,33,NULL);
INSERT INTO turns VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',4,'ended','ask Delete the moon',1794786022081108,'[]','completed','end_turn',NULL,NULL,'{}',NULL,'f2dc85a2c5ffcc2d9c031b389122dcbdaba04dca8dc936d015d9a6628b613cbb',NULL,0,0,NULL,'queue',1,1794786022081108,1794786022195153,36,43,'{"input_tokens":5,"output_tokens":6,"cached_tokens":0,"total_tokens":11,"cost_usd":null,"estimated":false,"cost_estimated":false}');
INSERT INTO turns VALUES('a0b87368-8159-40ce-8cc7-ad1657791458',5,'ended','echo to be undone',1794786022238164,'[]','completed','end_turn',NULL,NULL,'{}',NULL,'7ddedf8f18eccbf214b08a7cd0f3aced73c8c01d5b9edac1e57fe97aa817df9e',NULL,0,1,NULL,'queue',1,1794786022238164,1794786022245517,45,48,'{"input_tokens":5,"output_tokens":3,"cached_tokens":0,"total_tokens":8,"cost_usd":null,"estimated":false,"cost_estimated":false}');
INSERT INTO turns VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',1,'ended','echo first',1794786022329066,'[]','completed','end_turn',NULL,NULL,'{}',NULL,'ee81a7a156f27cc35940d2ecf7014b7440dfc299bde63f3166304e1c29fe58d2',NULL,0,0,NULL,'queue',1,1794786022329066,1794786022594723,3,8,'{"input_tokens":3,"output_tokens":2,"cached_tokens":0,"total_tokens":5,"cost_usd":null,"estimated":false,"cost_estimated":false}');
INSERT INTO turns VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',2,'running','think Hm.
tool look 5
plan a|b
echo one half, 
echo then the other
hang',1794786022629426,'[]',NULL,NULL,NULL,NULL,'{}',NULL,'293a30ddbd0f583b92488096f1a9bc99e8cfa1341a168b0510b09a94f599413d',NULL,0,0,NULL,'queue',1,1794786022629426,NULL,10,NULL,NULL);
INSERT INTO turns VALUES('6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b',3,'queued','echo queued',1794786022692473,'[]',NULL,NULL,NULL,NULL,'{}',NULL,'bea0d4bc0c6a8361a687680e1e9a50e4d6ccec4f792102f89ef542d5c621abd8',NULL,0,0,NULL,'queue',1,NULL,NULL,NULL,NULL,NULL);
-- Triggers and indices on  turns
CREATE TRIGGER turns_added AFTER INSERT ON turns WHEN new.files <> '[]' BEGIN
    INSERT OR IGNORE INTO turn_files
    SELECT value, new.session_id, new.turn_index FROM json_each(new.files);
END;
CREATE UNIQUE INDEX turns_key ON turns (session_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX turns_one_active ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE TRIGGER turns_removed AFTER DELETE ON turns WHEN old.files <> '[]' BEGIN
    DELETE FROM turn_files
    WHERE file_token IN (SELECT value FROM json_each(old.files))
      AND session_id = old.session_id AND turn_index = old.turn_index;
END;
CREATE INDEX turns_unsettled ON turns (session_id, turn_index) WHERE state <> 'ended';

-- Views
DROP VIEW IF EXISTS message_texts;
CREATE VIEW message_texts AS SELECT id, substr(content, 1, 100000) AS content FROM messages;

-- Database header
pragma user_version=1;

COMMIT TRANSACTION;

-- Restoring writable schema back to default
PRAGMA writable_schema=OFF;

-- We need to force SQLite to reread the schema because otherwise it doesn't
-- know that the virtual tables we inserted directly into sqlite_schema exist.
BEGIN;
CREATE TABLE no_such_table(x,y,z);
ROLLBACK;
