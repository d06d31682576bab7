// What test_bad_input.py runs inside the page: each function gives what it found, for the test to judge.
globalThis.bench = {};

bench.setUp = async () => {
    const base = document.querySelector('script[type=module]').src;
    const load = path => import(new URL(path, base).href);
    const names = ['markdown', 'ansi', 'apply', 'blocks', 'diff', 'rows', 'code', 'directions'];
    const kinds = ['prompt', 'text', 'tool', 'permission', 'small', 'end', 'diff_view'];
    const found = { lib: await load('lib.js'), words: await load('screens/words.js') };
    for (const name of names) found[name] = await load(`transcript/${name}.js`);
    for (const name of kinds) Object.assign(found, await load(`transcript/kinds/${name}.js`));
    for (const name of ['changes/patch.js', 'timeline/spans.js']) Object.assign(found, await load(`screens/${name}`));
    const place = document.createElement('div');
    document.body.append(place);
    const links = /^(?:https?:|mailto:)/i;
    const bad = (root) => [...root.querySelectorAll('*')].flatMap(element => [
        ['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'STYLE', 'LINK', 'META', 'BASE', 'FORM', 'IMG', 'VIDEO', 'AUDIO', 'MATH']
            .includes(element.tagName.toUpperCase()) ? `<${element.tagName}>` : '',
        ...[...element.attributes].filter(one => /^on|^(?:id|name|style|src|srcset|action|formaction|ping)$/i.test(one.name)
            || (/href$/i.test(one.name) && !links.test(one.value))).map(one => `${one.name}=${one.value}`),
    ]).filter(Boolean);
    Object.assign(bench, found, { place, bad });
};

bench.drawMarkdown = async texts => {
    const { place, bad, markdown } = bench;
    const found = [];
    for (const text of texts) {
        place.replaceChildren(markdown.renderMarkdown(text));
        found.push(...bad(place).map(what => `${text} → ${what}`));
        place.replaceChildren(markdown.renderLong(text));
        found.push(...bad(place).map(what => `${text} → ${what}`));
    }
    await new Promise(done => setTimeout(done, 50));
    return found;
};

bench.drawRows = async texts => {
    const { place, bad, lib, rows, apply } = bench;
    const { html, render } = lib;
    const found = [];
    const draw = (what, view) => {
        const host = document.createElement('div');
        place.replaceChildren(host);
        render(view, host);
        for (const fold of host.querySelectorAll('summary')) fold.click();
        render(view, host);
        found.push(...bad(host).map(one => `${what} → ${one}`));
        render(null, host);
    };
    for (const text of texts) {
        const group = new rows.Group('t1', 1, 1);
        const update = { toolCallId: text, title: text, kind: text, status: text, rawInput: { command: text, [text]: text },
            content: [{ type: 'diff', path: text, oldText: text, newText: `${text}\n${text}` },
                { type: 'content', content: { type: 'text', text: `\u001b[31m${text}\u001b]8;;${text}\u0007` } },
                { type: 'content', content: { type: 'resource_link', uri: text } }, null, text],
            locations: [{ path: text, line: text }, null] };
        const room = { groups: [group], running: lib.signal(null), id: 'x', path: '/x' };
        const ts = '2026-01-01T00:00:00Z';
        for (const event of [
            { type: 'thinking', content: text }, { type: 'tool_call', name: text, update }, { type: 'tool_update', update },
            { type: 'plan', update: { entries: [{ content: text, status: text }, null, text] } },
            { type: 'notice', update: { text } }, { type: 'text', content: text },
            { type: 'permission.requested', permission_id: text, tool: text, kind: text, options: [{ name: text, kind: text }, null],
                request: { toolCall: { title: text, rawInput: { command: text, other: text } } } },
            { type: 'turn.ended', outcome: text, error: text, stopped_by: text },
        ]) apply.applyToTurn(group, { seq: 1, turn: 1, ts, ...event });
        const prompt = rows.makeRow(group, 'prompt', { raw: text, files: [{ name: text }, null], ts });
        draw('prompt', html`<${bench.PromptRow} row=${prompt} />`);
        const kinds = { thinking: 'ThinkingRow', tool: 'ToolRow', plan: 'PlanRow', note: 'NoteRow', text: 'TextRow', permission: 'PermissionRow', end: 'EndRow' };
        for (const row of group.rows) draw(row.kind, html`<${bench[kinds[row.kind]]} row=${row} room=${room} session=${text} />`);
    }
    await new Promise(done => setTimeout(done, 50));
    return found;
};

bench.cutBlocks = () => {
    const { splitBlocks, Blocks } = bench.blocks;
    const check = (name, text) => {
        const found = splitBlocks(text);
        const same = found.map(one => one.raw).join('') === text;
        return [name, same, Math.max(...found.map(one => one.raw.length)) <= 8192];
    };
    const line = 'x'.repeat(32 * 1024 * 1024);
    const pieces = [];
    const blocks = new Blocks(raw => pieces.push(raw));
    for (let at = 0; at < 2000; at++) blocks.push('y'.repeat(4097) + (at % 7 ? '' : '\n'));
    blocks.end();
    return [check('line', line), check('ended', `${line}\n${line}\nshort\n`), check('items', '- item\n'.repeat(100000)),
        check('fence', '```python\n' + 'code\n'.repeat(50000)), check('emoji', '🌍'.repeat(50000)),
        check('surrogates', '\ud800'.repeat(40000)), check('blank', '\n'.repeat(50000) + 'x'),
        ['pieces', pieces.join('').length === 2000 * 4097 + 286, pieces.every(one => one.length <= 8192)]];
};

bench.showMarks = () => {
    const { markdown, ansi, place } = bench;
    place.replaceChildren(markdown.renderMarkdown('a \u202egnp.exe\u202c **b\u2066c** `d\u202ee` \u0000 \ud800 x'));
    const first = place.textContent;
    place.replaceChildren(ansi.renderTerminal('ls \u202e\u001b[31mred\u001b[0m\u0000\u0007\rlast'));
    return [first, place.textContent];
};

bench.drawTerminals = () => {
    const { ansi, place } = bench;
    const long = 'x'.repeat(8 * 1024 * 1024);
    const texts = [long, `${long}\r${long}`, '\u001b['.repeat(30000), '\u001b[31m'.repeat(30000) + 'x', `\u001b]${long}`];
    return texts.map(text => { place.replaceChildren(ansi.renderTerminal(text)); return place.textContent.length; });
};

bench.takeOdd = odd => {
    const { apply, rows, readSpans } = bench;
    const group = new rows.Group('t1', 1, 1);
    const types = ['text', 'thinking', 'tool_call', 'tool_update', 'plan', 'notice', 'compaction', 'permission.requested',
        'permission.decided', 'budget.warned', 'output.truncated', 'turn.ended', 'from.the.future'];
    const events = [];
    for (const type of types) for (const value of odd) {
        const fields = ['update', 'content', 'name', 'args', 'options', 'request', 'permission_id', 'tool', 'ts', 'usage', 'message'];
        for (const field of fields) events.push({ type, seq: events.length, turn: 1, ts: '2026-01-01T00:00:00Z', [field]: value });
        events.push({ type, seq: events.length, turn: 1, ts: '1970-01-01T00:00:00Z', update: { toolCallId: value, entries: value,
            content: value, locations: value, status: value, sessionUpdate: value, text: value } });
    }
    for (const event of events) apply.applyToTurn(group, event);
    const { html, render } = bench.lib;
    const room = { groups: [group], running: bench.lib.signal(null), id: 'x', path: '/x' };
    const kinds = { thinking: 'ThinkingRow', tool: 'ToolRow', plan: 'PlanRow', note: 'NoteRow', text: 'TextRow', permission: 'PermissionRow', end: 'EndRow' };
    for (const row of group.rows) {
        if (!kinds[row.kind]) continue;
        const host = document.createElement('div');
        bench.place.replaceChildren(host);
        render(html`<${bench[kinds[row.kind]]} row=${row} room=${room} session="x" />`, host);
        for (const fold of host.querySelectorAll('summary')) fold.click();
        render(html`<${bench[kinds[row.kind]]} row=${row} room=${room} session="x" />`, host);
        render(null, host);
    }
    const spans = readSpans(events, Date.now()).spans;
    return [group.rows.length > 0, spans.every(one => !(one.to < one.from))];
};

/** Whether each takes the short way, and whether the long way (forced by a link before it) makes the same of it. */
bench.compareWays = texts => texts.map(text => {
    const { renderMarkdown, isOneParagraph } = bench.markdown;
    const short = renderMarkdown(text);
    const long = renderMarkdown(`[x](http://a.invalid)\n\n${text}`);
    const [, second] = long.children;
    return [isOneParagraph(text), short.children.length === 1 && second?.outerHTML === short.firstElementChild.outerHTML];
});
