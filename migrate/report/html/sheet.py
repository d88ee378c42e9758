"""The rules of the style sheet: the page, its code, its pictures. Colours are variables of `style.py`."""

PAGE_SHEET = """
*{box-sizing:border-box}
html{scroll-padding-top:64px}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 var(--sans)}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:2px}
h1{font-size:19px;margin:0}h2{font-size:21px;margin:44px 0 14px;line-height:1.3}h3{font-size:16px;margin:22px 0 8px}
p{margin:8px 0}ul{margin:8px 0;padding-left:22px}
code,pre,.path,.place{font-family:var(--mono);font-size:.9em}
.path,.place,code{overflow-wrap:anywhere;unicode-bidi:isolate}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px;border-radius:4px}
[data-stop]:focus{outline:3px solid var(--focus);outline-offset:-3px}
.skip{position:absolute;left:8px;top:-80px;background:var(--raised);color:var(--link);padding:8px 14px;z-index:9;
border:1px solid var(--line);border-radius:0 0 8px 8px}
.skip:focus{top:0}
.top{position:sticky;top:0;z-index:5;background:var(--panel);border-bottom:1px solid var(--line);display:flex;
flex-wrap:wrap;gap:4px 20px;align-items:center;padding:10px 24px}
.top nav{display:flex;flex-wrap:wrap;gap:2px 16px;flex:1}
.top nav a{text-decoration:none;padding:3px 2px}.top nav a:hover{text-decoration:underline}
button{font:inherit;color:var(--ink);background:var(--raised);border:1px solid var(--line);border-radius:7px;
padding:4px 12px;cursor:pointer}
button:hover{border-color:var(--quiet)}
main{max-width:1680px;margin:0 auto;padding:0 24px 80px}
.quiet,.fact{color:var(--quiet);font-size:13.5px}
.lead{font-size:16px;margin:22px 0 6px}
.keys{color:var(--quiet);font-size:13.5px}
kbd{font:600 12px var(--mono);border:1px solid var(--line);border-bottom-width:2px;border-radius:5px;padding:1px 6px;
background:var(--raised);color:var(--ink)}
.tiles{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:18px 0;max-width:960px}
.tiles a{display:block;height:100%;padding:12px 16px;border:1px solid var(--line);border-left-width:4px;
border-radius:9px;text-decoration:none;color:var(--ink);background:var(--panel);font-size:13.5px}
.tiles a:hover{border-color:var(--quiet)}
.tiles b{display:block;font-size:25px;line-height:1.2;font-variant-numeric:tabular-nums}
.tiles .good a{border-left-color:var(--good)}.tiles .good b{color:var(--good)}
.tiles .bad a{border-left-color:var(--warn)}.tiles .bad b{color:var(--warn)}
.program,.verification{border:1px solid var(--line);border-radius:11px;padding:6px 20px 14px;margin:0 0 20px;
background:var(--panel)}
.program header,.entry header{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.program h3{margin:10px 0 4px}
.badge{font-size:12.5px;font-weight:600;border-radius:20px;padding:1px 11px;border:1px solid;white-space:nowrap}
.badge.good{color:var(--good);background:var(--good-panel)}.badge.bad{color:var(--warn);background:var(--warn-panel)}
.badge.plain{color:var(--quiet)}
.verdicts .badge.bad{color:var(--bad);background:var(--bad-panel)}
summary{cursor:pointer}
.words,.about{font-size:14px}.about summary b,.rule{font-family:var(--mono);font-size:.92em;font-weight:600}
.about{border-bottom:1px solid var(--line);padding:7px 0}
.about pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:8px 0 8px 18px;font-size:13px}
.entries{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr))}
.entry{border:1px solid var(--line);border-left:4px solid var(--line);border-radius:9px;padding:10px 16px 8px;
background:var(--panel);min-width:0}
.entry .name{color:var(--quiet)}.entry .place{margin-left:auto}
.entry pre{margin:8px 0;padding:7px 10px;background:var(--raised);border:1px solid var(--line);border-radius:6px;
white-space:pre-wrap;overflow-wrap:anywhere}
.entry.left,.entry.loop,.entry.review{border-left-color:var(--warn)}.entry.mistake{border-left-color:var(--bad)}
.entry.note{border-left-color:var(--note)}
.problems{color:var(--bad)}
.wide{overflow-x:auto}
.verdicts{border-collapse:collapse;width:100%;font-size:14px}
.verdicts th,.verdicts td{text-align:left;vertical-align:top;padding:7px 12px 7px 0;border-bottom:1px solid var(--line)}
.differs{color:var(--bad)}
.odd{background:var(--odd-panel);color:var(--odd);border-radius:3px;padding:0 4px;font:600 .82em var(--mono);
unicode-bidi:isolate;white-space:nowrap}
@media (max-width:900px){main{padding:0 12px 60px}.top{padding:8px 12px}.program{padding:4px 12px 12px}}
@media print{.top,.skip,.keys{display:none}.file,.gap{break-inside:auto}body{font-size:11px}}
"""

CODE_SHEET = """
.file{border:1px solid var(--line);border-radius:9px;margin:0 0 20px;background:var(--page);overflow:clip}
.bar{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline;padding:9px 14px;background:var(--panel);
border-bottom:1px solid var(--line);position:sticky;top:47px;z-index:2}
.bar h3{margin:0;font-size:15px;font-weight:600}
.bar::before{content:"\\25B8";color:var(--quiet)}details[open]>.bar::before{content:"\\25BE"}
.bar::-webkit-details-marker{display:none}.bar{list-style:none}
.count{font:600 13px var(--mono)}.added{color:var(--good)}.removed{color:var(--bad)}
.fact{padding:4px 16px;margin:0;border-bottom:1px solid var(--line)}
.code table{border-collapse:collapse;table-layout:fixed;width:100%;font:12.5px/1.55 var(--mono)}
col.num{width:52px}
.code td{padding:0;vertical-align:top}
.num{text-align:right;padding-right:10px!important;color:var(--quiet);user-select:none;
border-left:1px solid var(--line)}
.num:first-child{border-left:0}
.src{white-space:pre-wrap;overflow-wrap:anywhere;tab-size:4;direction:ltr}
.src{position:relative;padding:0 8px 0 22px!important}
.sign{position:absolute;left:6px;color:var(--ink);user-select:none}
.text,.text span,.text ins,.text del{unicode-bidi:isolate}
.gone{background:var(--gone)}.come{background:var(--come)}
.num.gone,.num.come{color:var(--ink)}
.src del{background:var(--gone-mark);text-decoration:none;border-radius:3px}
.src ins{background:var(--come-mark);text-decoration:none;border-radius:3px}
.none{background:var(--panel)}
.text .k{color:var(--keyword)}.text .s{color:var(--string)}.text .c{color:var(--comment)}.text .n{color:var(--number)}
.text .d{color:var(--defined)}
pre .k{color:var(--keyword)}pre .s{color:var(--string)}pre .c{color:var(--comment)}pre .n{color:var(--number)}
.why td{background:var(--note-panel);border-top:1px solid var(--line);border-bottom:1px solid var(--line);
font:13px/1.5 var(--sans);padding:4px 14px}
.why ul{list-style:none;margin:0;padding:0}
.remark td{padding:6px 14px;font:13px/1.5 var(--sans);border:1px solid var(--line);border-width:1px 0}
div.note{border-left:4px solid var(--warn);padding:2px 10px}
div.note.note{border-left-color:var(--note)}div.note.left,div.note.loop,div.note.review{border-left-color:var(--warn)}
div.note.mistake{border-left-color:var(--bad)}
.gap>summary,p.gap{background:var(--panel);color:var(--quiet);font:13px/1.5 var(--sans);margin:0;
padding:4px 14px 4px 62px;border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
.gap>summary:hover{color:var(--ink)}
tr:target td{box-shadow:inset 0 2px var(--focus),inset 0 -2px var(--focus)}
article:target{outline:3px solid var(--focus)}
@media (max-width:900px){
.both col{display:none}.both table,.both tbody{display:block}
.both tr{display:grid;grid-template-columns:40px 40px minmax(0,1fr)}
.both td:nth-child(1){grid-column:1}.both td:nth-child(3){grid-column:2}.both .src{grid-column:3}
.both .none,.both .same td:nth-child(2){display:none}.both .num{padding-right:6px!important}
.both .why,.both .remark{display:block}.both .why td,.both .remark td{display:block;grid-column:auto}
.num{border-left:0}.bar{position:static}}
"""

PICTURE_SHEET = """
.map{overflow-x:auto;padding:4px 0}
.map svg{display:block;max-width:100%;min-width:660px;height:auto;font-family:var(--sans)}
.map text{fill:var(--ink)}
.map .column{font-size:12.5px;fill:var(--quiet);text-anchor:middle;font-weight:600}
.map .round>rect{fill:none;stroke:var(--quiet);stroke-dasharray:2 4}
.map .lane{fill:var(--page);stroke:var(--line);stroke-width:1.2}
.map .trains .lane{stroke:var(--quiet)}
.map .title{font-size:12px;font-family:var(--mono)}
.map a:hover .title{text-decoration:underline}
.map .box{fill:var(--raised);stroke:var(--line)}
.map a:hover .box{stroke:var(--focus)}
.map a:focus-visible{outline:none}.map a:focus-visible .box{stroke:var(--focus);stroke-width:3}
.map a:focus-visible .title{text-decoration:underline;font-weight:700;fill:var(--link)}
.map .name{font:600 12.5px var(--mono)}.map .below{font-size:11.5px;fill:var(--quiet)}
.map .data .edge{fill:var(--data)}.map .model .edge{fill:var(--model)}.map .loss .edge{fill:var(--loss)}
.map .optimizer .edge{fill:var(--optimizer)}.map .scheduler .edge{fill:var(--scheduler)}
.map .way{fill:none;stroke:var(--arrow);stroke-width:1.5}.map .head{fill:var(--arrow)}
.map .back .way{stroke-dasharray:5 4;stroke-width:1.2}
.curves{margin:16px 0;max-width:820px}.curves figcaption{font-weight:600}
.curves>svg{width:100%;height:auto;background:var(--page);border:1px solid var(--line);border-radius:8px;margin:6px 0}
.curves text{fill:var(--quiet);font:12px var(--sans)}
.curves .end{text-anchor:end}.curves .middle{text-anchor:middle}
.curves .grid{stroke:var(--line);stroke-width:1}.curves .axis{stroke:var(--quiet);fill:none}
.curve path{fill:none;stroke-width:2.2}.curve.c0 path{stroke-width:6;opacity:.7}.curve.c0 circle{r:5}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:4px 22px}
.legend span{margin-right:8px}.legend svg{vertical-align:middle}
.differences{font-size:14px}
.numbers{border-collapse:collapse;font:12.5px var(--mono)}
.numbers th,.numbers td{padding:2px 14px 2px 0;text-align:right}
"""
