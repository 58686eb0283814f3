"""How the report looks: on paper, on a phone, by day and by night. Hues that the colour-blind can tell apart."""

STYLE = """
:root{--page:#fbfbfa;--card:#fff;--ink:#1b1f24;--soft:#5b6470;--faint:#e4e6e9;--accent:#0b62a8;--warn:#b84a00;
--warm:#fdf1e7;--c1:#0b62a8;--c2:#c85200;--c3:#0c8a66;--c4:#9a3f8b;--c5:#68707c;--c6:#a67c00}
@media screen and (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1b1f25;--ink:#e8eaed;--soft:#a0a8b4;
--faint:#31373f;--accent:#6db8f5;--warn:#ff9d5c;--warm:#33261c;--c1:#6db8f5;--c2:#ff9d5c;--c3:#46cfa6;--c4:#e095d3;
--c5:#99a2af;--c6:#e2bd48}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:72px 32px 48px}
h1{font-size:44px;line-height:1.1;letter-spacing:-.02em;margin:.1em 0 .5em}
h2{font-size:28px;letter-spacing:-.01em;margin:88px 0 8px}
h3{font-size:18px;margin:48px 0 4px}
p{max-width:72ch;margin:.4em 0 1em}
.eyebrow{color:var(--accent);font-weight:600;margin:0}
.lead{font-size:18px;color:var(--soft)}
.synthetic{background:var(--warm);border-left:4px solid var(--warn);padding:12px 16px;border-radius:4px}
.tiles{list-style:none;margin:40px 0 24px;padding:0;display:grid;grid-template-columns:repeat(3,1fr);gap:16px}
.tiles li{background:var(--card);border:1px solid var(--faint);border-radius:12px;padding:20px 24px}
.tiles b{display:block;font-size:40px;line-height:1.15;letter-spacing:-.02em;color:var(--accent);font-weight:650}
.tiles .what{display:block;font-weight:600}
.tiles .how{display:block;color:var(--soft);font-size:14px;line-height:1.45}
nav{display:flex;flex-wrap:wrap;gap:4px 24px;border-top:1px solid var(--faint);border-bottom:1px solid var(--faint);
padding:12px 0}
nav a{color:var(--accent);text-decoration:none}
nav a:hover{text-decoration:underline}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;line-height:1.35;margin:12px 0;min-width:100%}
th,td{padding:6px 8px;text-align:right;white-space:nowrap;font-weight:400}
thead th{color:var(--soft);font-size:12.5px;vertical-align:bottom}
thead tr:last-child th{border-bottom:1px solid var(--soft)}
thead th[rowspan]{border-bottom:1px solid var(--soft)}
thead th[title]{cursor:help}
th.group{text-align:center;font-weight:600}
th.group+th.group{border-left:8px solid transparent}
th.model{text-align:left;position:sticky;left:0;background:var(--page);z-index:1;padding-left:0}
tbody{border-bottom:1px solid var(--faint)}
tbody th.model{font-weight:600}
tr.paper th.model,tr.paper td{color:var(--soft);font-weight:400;padding-top:0}
tr.paper th.model{font-style:italic}
.best th,.best td{color:var(--accent);font-weight:600}
.best .note,.best .std{font-weight:400}
.note{display:block;color:var(--soft);font-size:12px;font-weight:400;white-space:normal;max-width:200px}
.std,.dash{color:var(--soft)}
table.plain{min-width:0}
table.plain thead th{border-bottom:1px solid var(--soft)}
dl{display:grid;gap:12px 32px;margin:12px 0;font-size:14px;line-height:1.5}
dl.columns{grid-template-columns:repeat(auto-fill,minmax(280px,1fr))}
dl.about{grid-template-columns:repeat(auto-fill,minmax(220px,1fr))}
dt{color:var(--soft)}dl.columns dt{color:var(--ink);font-weight:600}
dl.columns dd{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:24px;margin-top:24px}
figure{margin:0;background:var(--card);border:1px solid var(--faint);border-radius:12px;padding:20px 24px}
figure.wide{grid-column:1/-1}
figure h3{margin:0 0 4px;font-size:16px}
figcaption{color:var(--soft);font-size:14px;line-height:1.45}
.legend{list-style:none;margin:4px 0 8px;padding:0;display:flex;flex-wrap:wrap;gap:2px 18px;font-size:14px;
color:var(--soft)}
.legend li{display:flex;align-items:center;gap:6px}
.key{width:14px;height:14px}
.chart{display:block;width:100%;height:auto}
.grid{stroke:var(--faint);fill:none}
.tick,.axis,.name{fill:var(--soft);font-size:12px}
.name{font-size:11.5px}.axis{text-anchor:middle}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.mark{stroke:var(--card);stroke-width:1.2}
table.weights{min-width:0;width:100%;max-width:780px}
.weights th{text-align:left;padding-left:0;width:1%}.weights em{color:var(--accent);font-style:normal;font-weight:600}
.weights td:nth-child(2){width:1%}
.bar{position:relative;min-width:120px}
.bar:before{content:"";position:absolute;left:50%;top:0;bottom:0;border-left:1px solid var(--soft)}
.bar i{position:absolute;top:7px;bottom:7px;border-radius:2px}
.bar .plus{left:50%;background:var(--c1)}.bar .minus{right:50%;background:var(--c2)}
.swatch{width:14px;height:14px;border-radius:4px;border:1.5px solid var(--tint);
background:color-mix(in srgb,var(--tint) 16%,transparent)}
.sentence{background:var(--card);border:1px solid var(--faint);border-radius:12px;padding:20px 24px;margin:16px 0}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,max(220px,var(--least))),1fr));gap:20px 32px}
.panel{min-width:0}
.panel h4{margin:0 0 4px;font-size:14px}
.panel ul{margin:4px 0 0;padding:0;list-style:none;font-size:13.5px;line-height:1.45;color:var(--soft)}
.state{font-weight:400;color:var(--soft);margin-left:6px}
.warn{color:var(--warn)}
.graph{display:block}
.word{fill:var(--ink);font-size:15px}
.span{fill:var(--tint);fill-opacity:.15;stroke:var(--tint);stroke-width:1.2}
.span.other{stroke:var(--warn);stroke-width:2.4;stroke-dasharray:5 3}
.type{fill:var(--tint);font-size:11px;text-anchor:middle}
.type.other{fill:var(--warn);font-weight:700}
.arc path{fill:none;stroke:var(--soft);stroke-width:1.4}
.arc .tip{fill:var(--soft);stroke:none}
.arc rect{fill:var(--card)}
.arc text{fill:var(--ink);font-size:11.5px;text-anchor:middle}
.arc.other path,.arc.missing path{stroke:var(--warn)}.arc.other path{stroke-width:2.2}
.arc.missing path{stroke-dasharray:4 4}
.arc.other .tip,.arc.missing .tip{fill:var(--warn)}
.arc.other text{fill:var(--warn);font-weight:700}.arc.missing text{fill:var(--warn)}
.empty{color:var(--soft);font-style:italic}
footer{margin-top:88px;color:var(--soft);font-size:14px;border-top:1px solid var(--faint);padding-top:16px}
@media (max-width:760px){main{padding:32px 16px}h1{font-size:32px}h2{margin-top:64px}.lead{font-size:16px}
.tiles{grid-template-columns:repeat(2,1fr);gap:10px}.tiles li{padding:14px}.tiles b{font-size:28px}
.tiles .how{font-size:13px}.figures{grid-template-columns:minmax(0,1fr);gap:16px}figure,.sentence{padding:16px}
figure.wide .chart{min-width:720px}.weights th{white-space:normal}.note{max-width:130px}}
@media print{body{background:#fff;font-size:11pt}main{max-width:none;padding:0}nav{display:none}h2{margin-top:32px}
h2,h3{break-after:avoid}figure,.sentence,.tiles li,tbody{break-inside:avoid}.scroll{overflow:visible}
table{font-size:7.5pt}th,td{padding:3px 4px}th.model{position:static}.graph{max-width:100%;height:auto}}
"""
