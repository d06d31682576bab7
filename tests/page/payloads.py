"""Markup that tries to run, by the ways it tries. Each sets `window.__fired` if a browser runs any of it."""

from collections.abc import Iterator
from typing import Final

FIRE: Final = "window.__fired=1"

HANDLERS: Final = [
    f"<{tag} {more} {event}={FIRE}>"
    for tag, more, event in (
        ("img", "src=x", "onerror"),
        ("img", "src=x ", "onerror\x0c"),
        ("img/src=x", "", "OnErRoR"),
        ("svg", "", "onload"),
        ("svg/onload=" + FIRE + "//", "", "x"),
        ("body", "", "onload"),
        ("body", "", "onpageshow"),
        ("video", "autoplay src=x", "onerror"),
        ("audio", "src=x", "onerror"),
        ("video", "poster=x", "onloadstart"),
        ("input", "autofocus", "onfocus"),
        ("select", "autofocus", "onfocus"),
        ("details", "open", "ontoggle"),
        ("marquee", "", "onstart"),
        ("object", "data=x", "onerror"),
        ("link", "rel=stylesheet href=x", "onerror"),
        ("style", "", "onload"),
        ("p", "style='animation:a 1s' ", "onanimationstart"),
        ("xss", "tabindex=1 autofocus", "onfocus"),
        ("a", "href=# autofocus", "onfocus"),
    )
]

DOORS: Final = [
    f"<script>{FIRE}</script>",
    f"<script src='data:text/javascript,{FIRE}'></script>",
    f"<SCRIPT\n>{FIRE}</SCRIPT\n>",
    f"<<script>{FIRE}//<</script>",
    f"<iframe srcdoc='<script>parent.{FIRE}</script>'></iframe>",
    f"<iframe src='javascript:parent.{FIRE}'></iframe>",
    f"<embed src='javascript:{FIRE}'>",
    f"<object data='data:text/html,<script>{FIRE}</script>'></object>",
    f"<meta http-equiv=refresh content='0;url=javascript:{FIRE}'>",
    f"<base href='javascript:{FIRE}//'>",
    "<link rel=import href='data:text/html,x'>",
    "<style>@import 'http://example.invalid/';*{background:url(http://example.invalid/)}</style>",
    f"<form action='javascript:{FIRE}'><button>x</button></form>",
    f"<button formaction='javascript:{FIRE}'>x</button>",
    f"<isindex action=javascript:{FIRE} type=submit>",
    f"<math href='javascript:{FIRE}'>x</math>",
    f"<svg><a xlink:href='javascript:{FIRE}'><text>x</text></a></svg>",
    f"<svg><animate attributeName=href values='javascript:{FIRE}' /></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={FIRE}>#x'/></svg>",
    "<img srcset='http://example.invalid/x 1x'>",
    "<table background='http://example.invalid/'>",
    "<img src=http://example.invalid/pixel>",
    "<a ping='http://example.invalid/' href='http://example.invalid/'>x</a>",
    f"<x-element is={FIRE}></x-element>",
]

MUTATIONS: Final = [
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror={FIRE}&gt;'>",
    f'<svg></p><style><a id="</style><img src=x onerror={FIRE}>">',
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={FIRE}>",
    f'<noscript><p title="</noscript><img src=x onerror={FIRE}>">',
    f'<template><p title="</template><img src=x onerror={FIRE}>">',
    f'<xmp><p title="</xmp><svg/onload={FIRE}>">',
    f'<noembed><a title="</noembed><img src=x onerror={FIRE}>"></a>',
    f'<textarea><p id="</textarea><img src=x onerror={FIRE}>">',
    f'<title><a title="</title><img src=x onerror={FIRE}>">',
    f"<svg><style>&lt;img src=x onerror={FIRE}&gt;</style></svg>",
    f"<svg><foreignObject><iframe srcdoc='<img src=x onerror=parent.{FIRE}>'>",
    f"<math><annotation-xml encoding='text/html'><style><img src=x onerror={FIRE}></style>",
    f"<select><template><img src=x onerror={FIRE}></template></select>",
    f"<![CDATA[<img src=x onerror={FIRE}>]]>",
    f"<!--><img src=x onerror={FIRE}>-->",
    f"<!--[if IE]><img src=x onerror={FIRE}><![endif]-->",
    f"<?xml version='1.0'?><img src=x onerror={FIRE}>",
    f"&lt;img src=x onerror={FIRE}&gt;",
    f"<img src=x\x00 on\x00error={FIRE}>",
    f"<img alt='`><img src=x onerror={FIRE}>`'>",
    f"<table><tr><td><a title='</td></tr></table><img src=x onerror={FIRE}>'>",
]

CLOBBERS: Final = [
    "<form id=app><input name=attributes><input name=parentNode></form>",
    "<img name=getElementById><img id=DOMPurify><a id=trustedTypes>",
    "<form name=body><input name=firstChild></form>",
    "<a id=defaultView><a id=defaultView name=location href='http://example.invalid/'>",
    "<input name=nodeName><input name=childNodes><input name=removeChild>",
]

ADDRESSES: Final = [
    f"javascript:{FIRE}",
    f"JaVaScRiPt:{FIRE}",
    f"java\tscript:{FIRE}",
    f"java&#10;script:{FIRE}",
    f"&#106;avascript:{FIRE}",
    f"&#x6A&#x61vascript&colon;{FIRE}",
    f"\x01javascript:{FIRE}",
    f"%6aavascript:{FIRE}",
    f"vbscript:{FIRE}",
    f"data:text/html,<script>{FIRE}</script>",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "blob:http://127.0.0.1/x",
    "file:///etc/passwd",
    "//example.invalid/x",
    "feed:javascript:x",
    "intent://x#Intent;end",
]


def markup() -> Iterator[str]:
    yield from (*HANDLERS, *DOORS, *MUTATIONS, *CLOBBERS)


def markdown() -> Iterator[str]:
    """Each piece of markup in every place of a text, and each address in every kind of link."""
    for one in markup():
        line = one.replace("\n", " ")
        yield from (one, f"words {one} words", f"# {one}", f"- {one}", f"> {one}", f"**{one}**", f"`{line}`")
        yield from (
            f"| {line} |\n|---|\n| {line} |",
            f"```{line}\n{one}\n```",
            f"~~~html\n{one}",
            f"    {one}",
        )
        quoted = line.replace('"', "&quot;")
        yield from (f'[x](http://a.invalid "{quoted}")', f'![{line}](http://a.invalid "{quoted}")')
    for one in ADDRESSES:
        yield from (f"[x]({one})", f"[x](<{one}>)", f"![x]({one})", f"<{one}>", f"[x]\n\n[x]: {one}", one)
        yield from (f'<a href="{one}">x</a>', f"[![x]({one})]({one})", f'[x](http://a.invalid" href="{one})')
