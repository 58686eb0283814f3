"""Sentences like those of a newspaper, made up, with every entity and relation known.

They stand in for corpora that may not be shipped: in tests, in examples and wherever a figure must be
reproducible by everybody. A grammar writes them. Each of its lines is one way to write the symbol it stands
under:

    {a:person} lives in {b:town} <when> => a LiveIn b

names two entities, refers to another symbol, and states the relations that the line expresses. Nothing is
related but what a line says, so "flew to" or "was cleared of killing" mislead a reader who only looks for
"to" and "killing". (in|near) is a choice; a word may carry its part of (shot_VBN) where the lexicon
says another; a line that begins with a number counts that often.

Names are put together from syllables, and many endings serve people, towns and companies alike: a test set is
full of names that were not seen in training, and "Marlow" may be any of the three.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.corpus import Sentence

MIN_ENTITIES, MAX_ENTITIES = 2, 8

TYPES = {
    "person": "person",
    "town": "location",
    "country": "location",
    "place": "location",
    "company": "organization",
    "office": "organization",
    "agency": "organization",
    "nation": "none",
    "event": "none",
    "product": "none",
    "ship": "none",
}

GRAMMAR = """
sentence:
    30 <clause> .
    4 <clause> , and <clause> .
    3 <clause> , while <clause> .
    2 <clause> ; <clause> .
    2 <lead> , <clause> .
    <lead> , <clause> , and <clause> .
    <clause> , {a:person} <said> <when> .
    2 {a:person} <said> <when> that <clause> .
    {a:person} told {b:person} <when> that <clause> .
    {a:town} ( {b:agency} ) -- <clause> .
    `` <clause> , '' <said> {a:person} , <job> (at|with|of) {b:company} . => a WorkFor b
    `` <clause> , '' <said> {a:person} , <job> (from|in|of) {b:town} . => a LiveIn b

clause:
    6 <kill>
    8 <live>
    7 <work>
    6 <located>
    7 <based>
    5 <several>
    14 <nothing>

kill:
    2 {a:person} <pause> <killed> {b:person} <when> => a Kill b
    {a:person} <killed> <kin> , {b:person} , <where> => a Kill b
    {b:person} <pause> was <slain> by {a:person} <when> => a Kill b
    {b:person} was <slain> <where> by a man named {a:person} => a Kill b
    {a:person} <pause> (confessed to|was convicted of|admitted) <killing> {b:person} => a Kill b
    {a:person} admitted <killing> {b:person} , <job> at {c:company} => a Kill b, b WorkFor c
    the jury found that {a:person} , not {c:person} , <killed> {b:person} => a Kill b
    {a:person} , (the assassin of|who shot|the killer of) {b:person} , <did> => a Kill b
    {b:person} , whom {a:person} <killed> <when> , was <job> from {c:town} => a Kill b, b LiveIn c
    {b:person} 's (assassin|killer|murderer) , {a:person} , <did> => a Kill b
    {b:person} died <when> after {a:person} (opened fire|fired a rifle) from a window in {c:town} => a Kill b
    {b:person} of {c:town} died of wounds inflicted by {a:person} => a Kill b, b LiveIn c
    the bullet that killed {b:person} came from a rifle owned by {a:person} <pause> => a Kill b
    prosecutors blamed {a:person} for the death of {b:person} , <kin> of {c:person} => a Kill b

live:
    4 {a:person} <pause> <lived> in {b:town} => a LiveIn b
    {a:person} , (unlike|like) {c:person} , <lived> in {b:town} => a LiveIn b
    3 {a:person} of {b:town} <pause> <did> => a LiveIn b
    3 {a:person} , <job> (from|in|of) {b:town} , <did> => a LiveIn b
    3 {b:town} <trade> {a:person} <pause> <did> => a LiveIn b
    {a:person} , <job> whose family has a house in {b:town} , <did> => a LiveIn b
    {b:country} 's (president|premier|king) , {a:person} , <did> => a LiveIn b
    {a:person} , the (president|premier|king|leader) of {b:country} , <did> => a LiveIn b
    {a:person} and {c:person} grew up in {b:town} and {d:town} => a LiveIn b, c LiveIn d
    police searched the {b:town} home of {a:person} <when> => a LiveIn b
    {a:person} left {c:town} for a new home in {b:town} => a LiveIn b
    {b:town} 's {a:person} <did> => a LiveIn b
    in {b:town} , where {a:person} grew up , people talked of {c:event} => a LiveIn b
    3 {c:person} and {a:person} of {b:town} <did> => a LiveIn b
    {a:person} and {c:person} (settled|grew up) in {b:town} => a LiveIn b, c LiveIn b

work:
    3 {a:person} , <job> (of|at|with|in) {b:company} , <did> => a WorkFor b
    3 {b:company} <trade> {a:person} <pause> <did> => a WorkFor b
    2 {b:office} <trade> {a:person} <did> => a WorkFor b
    2 {a:person} of {b:company} <pause> <did> => a WorkFor b
    {b:company} 's {a:person} <did> => a WorkFor b
    3 {a:person} <pause> <served> {b:company} => a WorkFor b
    {b:company} <note> (hired|named|appointed|promoted) {a:person} <when> => a WorkFor b
    {a:person} is <job> at {b:office} in {c:town} => a WorkFor b, b OrgBasedIn c
    {a:person} , (unlike|like) {c:person} , <served> {b:company} => a WorkFor b
    {a:person} and {c:person} , both of {b:company} , <did> => a WorkFor b, c WorkFor b
    a (study|report) by {a:person} at {b:office} was published <when> => a WorkFor b
    {a:person} will replace {c:person} as <job> at {b:company} => a WorkFor b, c WorkFor b
    4 {c:person} and {a:person} , <job> (of|from|in) {b:company} , <did> => a WorkFor b

located:
    3 {a:person} <did> in {b:town} , {c:place} , <when> => b LocatedAt c
    3 {a:town} , {b:place} , <happened> => a LocatedAt b
    the (town|port|village) of {a:town} in (northern|southern|central) {b:place} <happened> => a LocatedAt b
    3 {a:town} <note> in {b:place} <happened> => a LocatedAt b
    2 {a:town} of {b:place} <happened> => a LocatedAt b
    2 {b:place} 's {a:town} <note> <happened> => a LocatedAt b
    {b:country} 's (capital|largest city|main port) , {a:town} , <happened> => a LocatedAt b
    the road to {a:town} <note> is the longest in {b:place} => a LocatedAt b
    in {b:place} , the town of {a:town} <happened> => a LocatedAt b
    {a:town} and {c:town} , both in {b:place} , <happened> => a LocatedAt b, c LocatedAt b
    {b:place} sent troops to its border town of {a:town} <when> => a LocatedAt b
    a {c:nation} plane landed near {a:town} , {b:place} , <when> => a LocatedAt b

based:
    {a:company} , based in {b:town} , <did> => a OrgBasedIn b
    {a:company} <note> is based in {b:town} => a OrgBasedIn b
    2 {b:town} - based {a:company} <did> => a OrgBasedIn b
    3 {a:company} of {b:town} <note> <did> => a OrgBasedIn b
    2 {b:town} 's {a:company} <did> => a OrgBasedIn b
    2 {a:company} , (a bank|a maker of engines|a law firm|a brewer) (from|in|of) {b:town} , <did>
        => a OrgBasedIn b
    {a:company} has its headquarters in {b:town} => a OrgBasedIn b
    workers left the {b:town} (home|headquarters) of {a:company} <when> => a OrgBasedIn b
    2 {a:office} in {b:place} <did> => a OrgBasedIn b
    the {b:country} office of {a:office} <did> => a OrgBasedIn b
    {a:company} , which makes the {c:product} in {b:town} , <did> => a OrgBasedIn b
    {a:company} and {c:company} are based in {b:town} and {d:town} => a OrgBasedIn b, c OrgBasedIn d
    {a:company} left {c:town} for a new home in {b:town} => a OrgBasedIn b
    3 {c:company} and {a:company} of {b:town} <did> => a OrgBasedIn b

several:
    {a:person} , who (runs|heads) {b:company} in {c:town} , lives in {d:town}
        => a WorkFor b, b OrgBasedIn c, a LiveIn d
    {a:person} , <job> at {b:office} in {c:town} , {d:place} , <did>
        => a WorkFor b, b OrgBasedIn c, b OrgBasedIn d, c LocatedAt d
    {a:person} of {c:town} , {d:place} , <did> => a LiveIn c, a LiveIn d, c LocatedAt d
    {a:person} of {c:town} <killed> {b:person} of {d:town} => a LiveIn c, b LiveIn d, a Kill b
    {b:company} of {c:town} , {d:place} , <did> => b OrgBasedIn c, b OrgBasedIn d, c LocatedAt d
    {b:company} <trade> {a:person} , a native of {c:town} , <did> => a WorkFor b, a LiveIn c
    {a:person} , a {d:town} lawyer , (sued|defended) {b:company} of {c:town} => a LiveIn d, b OrgBasedIn c

nothing:
    2 {a:person} <did>
    2 {a:company} <did>
    4 {a:person} <pause> <stayed> in {b:town} <when>
    {a:person} (visited|flew to|left) {b:town} <when>
    4 {a:person} <pause> <met> {b:person} <when>
    {a:person} (denied|was cleared of|was wrongly accused of) <killing> {b:person}
    {a:person} <pause> mourned {b:person} , who was <slain> in {c:town} <when>
    the man who <killed> {a:person} met {b:person} <when>
    2 <kin> of {a:person} <lived> in {b:town}
    {a:person} never (lived_VBN|settled_VBN) in {b:town}
    2 <kin> of {a:person} <served> {b:company}
    3 {a:person} <pause> <fought> {b:company} <when>
    {a:company} (sued|hired a rival of|rejected claims by) {b:person} <when>
    {a:company} (sold engines|will build a road|lost a contract) in {b:town}
    2 {a:person} <did> in {b:town} , {c:town} and {d:place}
    2 {a:person} <did> in {b:town}
    2 {a:company} <did> in {b:town}
    2 {a:town} , {b:town} and {c:place} <happened>
    2 {a:town} , like {b:place} , <happened>
    {a:place} and {b:town} <happened>
    flights from {a:town} to {b:place} were delayed <when>
    {a:country} and {b:place} signed a treaty in {c:town}
    <job> (of|from) {a:company} flew from {b:town} to {c:town} with {d:person}
    the {a:nation} team won {b:event} in {c:town}
    the {a:product} outsold the {b:product} of {c:company} <when>
    talks between {a:office} and {b:company} , held in {c:town} , failed
    3 {a:person} , <job> (of|from|in|on) the {b:ship} , <did>
    2 {a:ship} <trade> {b:person} <did>
    {a:person} of the {b:ship} <did>
    the {a:ship} of {b:town} <did>
    the {a:ship} , {b:place} , <did>
    {a:person} 's {b:ship} <did>
    3 after the storm in {a:town} , {b:place} <happened>
    2 {a:person} <did> in {b:town} , {c:place} 's old rival
    2 {a:person} <did> in {b:town} , {c:person} <said>

lead:
    in a ruling that surprised {a:town}
    hours before {a:event}
    after {a:event} in {b:country}
    as {a:nation} troops withdrew
    according to {a:office}
    <when>

did:
    5 declined to comment
    3 told reporters <when> that the plan would fail
    2 asked for more time
    2 denied any part in the (killing|murder|shooting)
    2 won a {a:nation} contract
    rejected the appeal
    issued a warning <when>
    sold the {a:product} <when>
    played a part in {a:event}
    opened talks in {a:town}
    opened an office in {a:town} , {b:place} , <when> => a LocatedAt b
    met {a:person} <when>
    met {a:person} of {b:town} => a LiveIn b
    thanked {a:person} of {b:company} <when> => a WorkFor b
    asked {a:office} for help
    sued {a:company} <when>
    sued {a:company} of {b:town} => a OrgBasedIn b

happened:
    2 stayed calm <when>
    2 suffered heavy damage <when>
    will host {a:event}
    reported new cases of fever
    welcomed {a:person} <when>
    feared {a:nation} guns
    sued {a:company}

when:
    6
    on (Monday|Tuesday|Friday|Sunday)
    last (week|month|year)
    early yesterday
    in (1961|1974|1983|1990)
    two years ago
    in (March|August|October)

where:
    2 on a quiet street
    at a hotel in {a:town}
    outside the office of {a:company}
    from a passing car

said:
    (said|announced|added|insisted)

lived:
    (lives|lived|settled|resides|grew up|was born|was raised|dwells|retired_VBD|bought a house|kept a farm)

stayed:
    (stayed|slept|spoke|taught|danced|waited|landed|sang|voted|was arrested|arrived|lost a suit)

served:
    (runs|heads|chairs|manages|works for|joined|leads|advises|serves|keeps the books of|speaks for)

fought:
    (sued|praised|criticized|bought shares in|distrusts|mocked|left|wrote to|lost a suit against|fears)

met:
    (met|thanked|attacked|accused|defended|wrote to|hit|followed|robbed|wounded|blamed|trusted|arrested_VBD)

killed:
    (shot|killed|murdered|stabbed|poisoned|gunned down|strangled|executed|drowned)

killing:
    (killing_VBG|shooting_VBG|the murder of|the slaying of|poisoning)

slain:
    (shot_VBN|killed_VBN|murdered_VBN|stabbed_VBN|ambushed|executed_VBN)

kin:
    (his cousin|her former husband|a neighbor|a rival)

job:
    (a lawyer|a farmer|a teacher|a surgeon|an engineer|a judge|a colonel|a poet|a singer|a painter|a broker)
    (a spokesman|an analyst|a banker|a chemist|a professor|an economist|a director|a clerk|a nurse|a pilot)
    (a former|a retired|a young|a leading) <trade>

trade:
    (lawyer|farmer|teacher|surgeon|engineer|judge|colonel|poet|singer|painter|broker)
    (spokesman|analyst|banker|chemist|professor|economist|director|clerk|nurse|pilot)

pause:
    8
    , after months of delay ,
    , despite the long trial ,
    , like many others in {a:country} ,
    , once close to {a:person} ,
    , still angry about a report on {a:company} ,
    , long known in {a:town} ,
    , whose cousin (lives|settled) in {a:town} ,
    3 , who <did> ,

note:
    6
    , after months of delay ,
    , like many others in {a:country} ,
    , named for {a:person} ,
    , once close to {a:company} ,
    2 , which <did> ,

person:
    5 <first> <surname>
    <first> <initial> <surname>
    6 <surname>

town:
    8 <townname>
    <direction> <townname>
    (Lake_NNP|Port_NNP|Mount_NNP) <townname>
    <townname> (County_NNP|Island_NNP|Valley_NNP)

country:
    6 <countryname>
    <direction> <countryname>

place:
    <country>
    <town>

company:
    8 <companyname>
    3 <companyname> <firm>
    <surname> <firm>
    <townname> <firm>
    <surname> (and_CC|&_CC) <surname>
    <acronym>

agency:
    <acronym>

office:
    3 <acronym>
    2 the_DT University_NNP of_IN <townname>
    2 <townname> (University_NNP|Hospital_NNP|College_NNP)
    the_DT (Justice_NNP|Trade_NNP|Health_NNP) Ministry_NNP
    the_DT <surname> (Institute_NNP|Foundation_NNP)
    the_DT <townname> (Herald_NNP|Tribune_NNP|Gazette_NNP)

nation:
    <nationname>

ship:
    3 <companyname>
    2 <townname>
    <surname>

event:
    the_DT <townname> (Games_NNPS|Cup_NNP|Festival_NNP)
    the_DT (Harvest_NNP|Winter_NNP|Liberty_NNP) (Games_NNPS|Parade_NNP|Cup_NNP)
    the_DT <surname> Trial_NNP

product:
    <companyname> (200_CD|300_CD|450_CD)
    <surname> (rifle_NN|engine_NN)
    <companyname>

direction:
    (North_NNP|South_NNP|East_NNP|New_NNP)

firm:
    (Corp._NNP|Inc._NNP|Industries_NNPS|Bank_NNP|Motors_NNPS|Airlines_NNPS|Press_NNP|Co._NNP|Group_NNP)
"""

LEXICON = """
CC: and both
CD: 1961 1974 1983 1990 two
DT: a an any the
IN: about after against as at before between by despite for from in like near of on outside that to
IN: unlike while with
JJ: angry calm central close former heavy last long main many new northern old passing quiet retired
JJ: southern young
JJR: more
JJS: largest longest
MD: will would
NN: analyst appeal assassin bank banker border brewer broker bullet capital car chemist city clerk
NN: colonel contract cousin damage death delay director economist engineer family farm farmer fever fire
NN: firm headquarters help home hotel house husband judge jury killer killing king law lawyer leader
NN: maker man month murder murderer native neighbor nurse office painter part pilot plan plane
NN: poet police port premier president professor report rifle rival road ruling shooting singer slaying
NN: spokesman storm street study suit surgeon teacher team time town treaty trial
NN: village warning week window year yesterday
NNP: August Friday March Monday October Sunday Tuesday
NNS: books cases claims engines flights guns hours months others people prosecutors reporters shares
NNS: talks troops workers wounds years
POS: 's
PRP$: her his its
RB: ago early never not once still wrongly
RP: down up
VB: build comment fail host replace
VBD: accused added admitted announced appointed arrived asked attacked blamed bought came confessed
VBD: criticized danced declined defended denied died drowned executed failed feared fired flew followed
VBD: found grew gunned hired hit insisted issued joined kept killed landed left lived lost met mocked
VBD: mourned murdered named opened outsold played poisoned praised promoted rejected reported robbed said
VBD: sang searched sent settled shot signed slept sold spoke stabbed stayed strangled sued suffered
VBD: surprised talked taught thanked told trusted visited voted waited was welcomed were withdrew won
VBD: wounded wrote
VBG: according leading poisoning
VBN: ambushed arrested based born cleared convicted delayed held inflicted known owned published
VBN: raised
VBP: are
VBZ: advises chairs distrusts dwells fears has heads is keeps leads lives makes manages resides runs
VBZ: serves speaks works
WDT: which
WP: who whom
WP$: whose
WRB: where
"""

BEGINNINGS = "B Br C D F G Gr H K L M N P Pr Qu R S St T Th V W Wh Z"
MIDDLES = "ad ald arl arn ask av ell end inn irk olt orv und"
SHARED_ENDINGS = "ow ton ley ford by er an " * 4  # a person, a town or a company
NAME_ENDINGS = {
    "surname": SHARED_ENDINGS + "son man ick well sky etti ova",
    "townname": SHARED_ENDINGS + "burg ville port field mouth stead grad",
    "companyname": SHARED_ENDINGS + "ex ica tek ero dyne",
    "countryname": "ia land istan avia ow ton ley ford",
    "nationname": "ian ish ese",
}
FIRST_NAMES = """
Ada Bruno Clara Dmitri Elsa Felix Greta Hugo Ines Jonas Karin Leo Mara Nils Olga Pavel Rosa Simon Tessa
Viktor Wanda Yusuf Zoe Amir Beatriz Carlos Dora Emil Fatima Georg Hana Ivan Julia Kofi Lena Marco Nadia
Oscar Petra Rafael
"""
PUNCTUATION = frozenset(",.;")
WORD, SYMBOL, ENTITY = range(3)


class Line(NamedTuple):
    """One way to write a symbol: its items in order, and the relations between its entities."""

    items: tuple[tuple[int, tuple[str, str]], ...]  # (WORD, (word, tag)), (SYMBOL, (name, "")), (ENTITY, (name, kind))
    relations: tuple[tuple[str, str, str], ...] = ()  # source, name, target


def generate(n: int, seed: int, labelled: bool = True) -> Iterator[Sentence]:
    """Writes `n` sentences of 2 to 8 entities; a seed gives the same ones whatever `n` and `labelled` are."""
    if n < 0:
        raise CorpusError(f"Cannot write {n} sentences. Ask for 0 or more.")
    chance = random.Random(seed)
    for number in range(n):
        draft = _Draft(chance)
        while not MIN_ENTITIES <= len(draft.spans) <= MAX_ENTITIES:
            draft = _Draft(chance)
            draft.write("sentence")
        yield draft.finish(f"synthetic-{number}", labelled)


class _Draft:
    """A sentence while it is being written."""

    __slots__ = ("chance", "relations", "spans", "types", "words")

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.words: list[tuple[str, str]] = []
        self.spans: list[tuple[int, int]] = []
        self.types: list[str] = []
        self.relations: list[tuple[int, int, str]] = []

    def write(self, symbol: str) -> None:
        lines = SYMBOLS[symbol]
        items, relations = lines[int(self.chance.random() * len(lines))]
        entities = {}
        for form, item in items:
            if form == WORD:
                self.add(item)
            elif form == SYMBOL:
                self.write(item[0])
            else:
                entities[item[0]] = len(self.spans)
                self.name(item[1])
        for source, name, target in relations:
            self.relations.append((entities[source], entities[target], name))

    def add(self, word: tuple[str, str]) -> None:
        if word[0] in PUNCTUATION and self.words and self.words[-1][0] == ",":
            self.words.pop()  # nothing came after that comma
        self.words.append(word)

    def name(self, kind: str) -> None:
        start = len(self.words)
        self.write(kind)
        if self.words[start][1] == "DT":
            start += 1  # an article is no part of a name
        self.spans.append((start, len(self.words)))
        self.types.append(TYPES[kind])

    def finish(self, id: str, labelled: bool) -> Sentence:
        tokens = [word for word, _ in self.words]
        for index, token in enumerate(tokens):
            if token == "a" and tokens[index + 1][0] in "aeioAEIO":
                tokens[index] = "an"
            if index == 0 or tokens[index - 1] in ("``", "--"):
                tokens[index] = tokens[index][0].upper() + tokens[index][1:]
        return Sentence(
            id=id,
            tokens=tuple(tokens),
            spans=tuple(self.spans),
            pos=tuple(tag for _, tag in self.words),
            types=tuple(self.types) if labelled else None,
            relations=tuple(self.relations) if labelled else None,
        )


def _read_grammar(text: str, tags: dict[str, str]) -> dict[str, list[Line]]:
    """Reads symbols and their lines; a choice becomes a symbol of its own, named by its text."""
    symbols: dict[str, list[Line]] = {}

    def read(line: str) -> Line:
        items = []
        written, _, related = line.partition("=>")
        for part in re.findall(r"\((?! )[^)]+\)|\S+", written):
            if part[0] == "(" and len(part) > 1:
                symbols.setdefault(part, [read(choice) for choice in part[1:-1].split("|")])
                items.append((SYMBOL, (part, "")))
            elif part[0] == "<":
                items.append((SYMBOL, (part[1:-1], "")))
            elif part[0] == "{":
                name, _, kind = part[1:-1].partition(":")
                items.append((ENTITY, (name, kind)))
            else:
                word, _, tag = part.partition("_")
                items.append((WORD, (word, tag or tags[word])))
        relations = [tuple(relation.split()) for relation in related.split(",") if relation]
        return Line(tuple(items), tuple((source, name, target) for source, name, target in relations))

    for block in text.replace("\n        =>", " =>").strip().split("\n\n"):
        symbol, *lines = block.split("\n")
        symbols[symbol.rstrip(":")] = written = []
        for line in lines:
            weight, rest = re.fullmatch(r"\s*(\d*)(?![\w])(.*)", line).groups()  # type: ignore[union-attr]
            written.extend([read(rest)] * int(weight or 1))
    return symbols


def _read_names() -> dict[str, list[Line]]:
    letters = "ABCDEFGHIKLMNOPRSTUVW"
    names = {
        symbol: ["".join(parts) for parts in product(BEGINNINGS.split(), MIDDLES.split(), endings.split())]
        for symbol, endings in NAME_ENDINGS.items()
    }
    names["first"] = FIRST_NAMES.split()
    names["initial"] = [letter + "." for letter in letters]
    names["acronym"] = ["".join(three) for three in product(letters, repeat=3)]
    tags = {"nationname": "JJ"}
    return {
        symbol: [Line(((WORD, (word, tags.get(symbol, "NNP"))),)) for word in words] for symbol, words in names.items()
    }


def _read_lexicon(text: str) -> dict[str, str]:
    marks = {mark: mark for mark in (",", ".", "``", "''")} | {
        "(": "-LRB-",
        ")": "-RRB-",
        ";": ":",
        "--": ":",
        "-": "HYPH",
    }
    rows = [line.split(": ") for line in text.strip().splitlines()]
    return {word: tag for tag, words in rows for word in words.split()} | marks


SYMBOLS = _read_grammar(GRAMMAR, _read_lexicon(LEXICON)) | _read_names()
