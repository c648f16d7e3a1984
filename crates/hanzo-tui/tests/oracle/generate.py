#!/usr/bin/env python3
"""Makes cases for the vim oracle by typing random keys into real Vim and real Neovim.

    generate.py --count 500 --seed 1 --out cases.json

Each case starts from a random text, cursor and register; the same keys go one at a time to both editors, and the case is
kept only when both end in the same state. Vim runs on a pseudo-terminal and is fed over a channel, key by key, each only
after the one before is consumed: `:normal` and typeahead would be thrown away by a failing motion, as they are not when a
person types. Neovim runs embedded and gets `nvim_input`. Cases in which we differ on purpose are named, with the reason, in
may-differ.json.
"""

import argparse
import json
import os
import pty
import random
import socket
import struct
import subprocess
import sys
import threading
import time

OPTIONS = [
    "set nocompatible encoding=utf-8 startofline noautoindent selection=inclusive virtualedit= whichwrap=b,s",
    "set backspace=indent,eol,start textwidth=0 tabstop=8 shiftwidth=2 notimeout nottimeout clipboard=",
    "set ambiwidth=single noexpandtab noswapfile nomore shortmess+=I belloff=all cpoptions=aABceFs nojoinspaces",
    "set formatoptions= nrformats= matchpairs=(:),{:},[:] noincsearch nosmartindent nocindent softtabstop=0",
]

# What a case ends in, the same expression in both editors. getreg() of a register never written is the empty string.
STATE = (
    "[join(getline(1,'$'),\"\\n\"), line('.')-1, charcol('.')-1, mode(1), getreg('\"'), getregtype('\"'), "
    "getcharpos('v')[1]-1, getcharpos('v')[2]-1]"
)

SPECIAL = {"<Esc>": "\x1b", "<CR>": "\r", "<BS>": "\x08", "<C-w>": "\x17", "<C-u>": "\x15", "<C-r>": "\x12", "<lt>": "<"}


class Vim:
    name = "vim"

    def __init__(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            command = ["vim", "-Nu", "NONE", "-n", "-i", "NONE", "--noplugin"]
            for options in OPTIONS:
                command += ["-c", options]
            command += ["-c", f"let g:ch = ch_open('127.0.0.1:{port}', {{'mode': 'json'}})"]
            os.execvp("vim", command)
        threading.Thread(target=self.drain, daemon=True).start()
        listener.settimeout(20)
        self.socket = listener.accept()[0]
        self.socket.settimeout(20)
        self.reader = self.socket.makefile("r", encoding="utf-8")
        self.number = 0

    def drain(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def ask(self, *message):
        self.number -= 1
        self.socket.sendall((json.dumps([*message, self.number], ensure_ascii=False) + "\n").encode())
        decoder = json.JSONDecoder()
        text = ""
        while True:
            text += self.reader.read(1)
            if text.endswith("]"):
                try:
                    answer, _ = decoder.raw_decode(text.strip())
                except ValueError:
                    continue
                if answer[0] == self.number:
                    return answer[1]
                text = ""

    def evaluate(self, expression):
        return self.ask("expr", expression)

    def press(self, key):
        self.ask("call", "feedkeys", [key, "t"])
        for _ in range(2000):
            if self.evaluate("state('m')") == "":
                return
            time.sleep(0.0005)
        raise RuntimeError("vim did not consume a key")

    def close(self):
        self.socket.close()
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def pack(value):
    """The part of MessagePack that requests need."""
    if isinstance(value, int):
        return struct.pack(">Bi", 0xD2, value)
    if isinstance(value, str):
        data = value.encode()
        return struct.pack(">BI", 0xDB, len(data)) + data
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    raise TypeError(value)


class Unpacker:
    def __init__(self, stream):
        self.stream = stream

    def take(self, size):
        data = self.stream.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def many(self, count):
        return [self.value() for _ in range(count)]

    def pairs(self, count):
        flat = self.many(2 * count)
        return dict(zip(map(str, flat[::2]), flat[1::2]))

    def text(self, size):
        return self.take(size).decode("utf-8", "replace")

    def value(self):
        tag = self.take(1)[0]
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self.pairs(tag & 15)
        if tag < 0xA0:
            return self.many(tag & 15)
        if tag < 0xC0:
            return self.text(tag & 31)
        if tag >= 0xE0:
            return tag - 256
        fixed = {0xC0: None, 0xC2: False, 0xC3: True}
        if tag in fixed:
            return fixed[tag]
        numbers = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
        numbers |= {0xCA: ">f", 0xCB: ">d"}
        if tag in numbers:
            return self.number(numbers[tag])
        if tag in (0xC4, 0xD9):
            return self.text(self.number(">B"))
        if tag in (0xC5, 0xDA):
            return self.text(self.number(">H"))
        if tag in (0xC6, 0xDB):
            return self.text(self.number(">I"))
        if tag in (0xDC, 0xDD):
            return self.many(self.number(">H" if tag == 0xDC else ">I"))
        if tag in (0xDE, 0xDF):
            return self.pairs(self.number(">H" if tag == 0xDE else ">I"))
        if 0xD4 <= tag <= 0xD8:
            return self.take(1 + (1 << (tag - 0xD4)))
        if tag in (0xC7, 0xC8, 0xC9):
            size = self.number({0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}[tag])
            return self.take(1 + size)
        raise ValueError(hex(tag))


class Neovim:
    name = "nvim"

    def __init__(self):
        command = ["nvim", "--embed", "--headless", "-u", "NONE", "-n", "-i", "NONE", "--noplugin"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.unpacker = Unpacker(self.process.stdout)
        self.number = 0
        for options in OPTIONS:
            self.request("nvim_command", options.replace("nocompatible ", "").replace("encoding=utf-8 ", ""))
        # Neovim maps Y to y$ by default; the cases pin Vim's.
        self.request("nvim_command", "silent! unmap Y")
        self.request("nvim_command", "set nohlsearch")

    def request(self, method, *arguments):
        self.number += 1
        self.process.stdin.write(pack([0, self.number, method, list(arguments)]))
        self.process.stdin.flush()
        while True:
            message = self.unpacker.value()
            if message[0] == 1 and message[1] == self.number:
                if message[2] is not None:
                    raise RuntimeError(message[2])
                return message[3]

    def evaluate(self, expression):
        return self.request("nvim_eval", expression)

    def press(self, key):
        keys = "<lt>" if key == "<" else key
        self.request("nvim_input", keys)
        # Fast requests are answered while Neovim waits; ask until the key is consumed.
        for _ in range(3):
            self.request("nvim_get_mode")

    def blocked(self):
        return self.request("nvim_get_mode")["blocking"]

    def close(self):
        self.process.kill()
        self.process.wait()


def vim_string(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + escaped + '"'


def prepare(editor, start):
    for key in ("\x1b", "\x1b"):
        editor.press(key)
    lines = "[" + ",".join(map(vim_string, start["text"].split("\n"))) + "]"
    register = start["register"]
    commands = [
        "execute('enew!')",
        "execute('set undolevels=-1')",
        f"setline(1, {lines})",
        "execute('set undolevels=1000')",
    ]
    if register is not None:
        kind = "V" if register["kind"] == "line" else "v"
        commands += [f"setreg('\"', {vim_string(register['text'])}, '{kind}')"]
    cursor = start["cursor"]
    commands += [f"setcursorcharpos({cursor['line'] + 1}, {cursor['col'] + 1})"]
    for command in commands:
        editor.evaluate(command)


MODES = {"n": "normal", "niI": "normal", "i": "insert", "v": "visual", "V": "visual-line", "c": "command"}


def run(editor, start, keys):
    prepare(editor, start)
    for key in keys:
        editor.press(SPECIAL.get(key, key))
    if editor.name == "nvim" and editor.blocked():
        return None
    text, line, column, mode, register, kind, anchor_line, anchor_column = editor.evaluate(STATE)
    if mode.startswith("no"):
        mode = "operator-pending"
    elif mode in MODES:
        mode = MODES[mode]
    else:
        return None
    end = {"text": text, "cursor": {"line": line, "col": column}, "mode": mode}
    end["register"] = {"text": register, "kind": "line" if kind == "V" else "char"} if kind else None
    if mode.startswith("visual"):
        end["anchor"] = {"line": anchor_line, "col": anchor_column}
    return end


WORDS = ["foo", "bar", "baz9", "a", "b_c", "x-y", "f(a, b)", '"q r"', "'s'", "`t`", "[i]", "{k: v}", "->", "...", "héllo",
         "日本語", "テスト", "漢字かな", "don't", '"a\\"b"', "f(g(x))", "<br>", "A.B", "ÄÖ", "(", ")", '"', "{", "}"]
BLANKS = [" ", " ", " ", "  ", "\t", "   "]


def random_line(rng):
    if rng.random() < 0.12:
        return rng.choice(["", "", "  ", "\t"])
    line = rng.choice(["", "", "", "  ", "\t", "    "])
    for index in range(rng.randint(1, 5)):
        if index and rng.random() < 0.85:
            line += rng.choice(BLANKS)
        line += rng.choice(WORDS)
    return line + rng.choice(["", "", "", "", " ", "  "])


def random_start(rng):
    lines = [random_line(rng) for _ in range(rng.choice([1, 1, 2, 3, 4, 5]))]
    line = rng.randrange(len(lines))
    column = rng.randrange(max(1, len(lines[line])))
    register = None
    chance = rng.random()
    if chance < 0.3:
        register = {"text": rng.choice(["XY", "z", "p\nq", "日", "m\n", "u v\n\nw"]), "kind": "char"}
    elif chance < 0.5:
        register = {"text": rng.choice(["  new\n", "a\nb\n", "\n"]), "kind": "line"}
    return {"text": "\n".join(lines), "cursor": {"line": line, "col": column}, "mode": "normal", "register": register}


def random_motion(rng):
    chance = rng.random()
    if chance < 0.2:
        return [rng.choice("ftFT"), rng.choice('abfo( ,".)')]
    if chance < 0.3:
        return ["g", rng.choice("geEg_")]
    # Not `{`: in these versions it goes to the end of a text of one line, which newer ones mended.
    return [rng.choice("hjklwbeWBE0^$Gwwbe;,}_+-| ")]


def random_object(rng):
    return [rng.choice("ia"), rng.choice([*"wwwWW\"\"'`(()[{}>bBp", "<lt>"])]


def random_count(rng):
    return list(str(rng.choice([2, 2, 3, 3, 4, 7, 12]))) if rng.random() < 0.25 else []


def random_typing(rng, sure):
    """Keys for insert mode; only such as are also known in normal mode when getting there was not `sure`."""
    keys = []
    choice = ["X", "Y", "x", " ", "-", "<CR>", "<BS>", "<BS>"]
    if sure:
        choice += ["日", "(", "<C-w>", "<C-w>", "<C-u>"]
    for _ in range(rng.randint(0, 4)):
        keys.append(rng.choice(choice))
    return keys + ["<Esc>"]


def random_target(rng, operator):
    chance = rng.random()
    if chance < 0.15:
        return [operator]
    if chance < 0.45:
        return random_count(rng) + random_object(rng)
    return random_count(rng) + random_motion(rng)


def random_command(rng):
    chance = rng.random()
    if chance < 0.22:
        return random_count(rng) + random_motion(rng)
    if chance < 0.55:
        operator = rng.choice("dddccyy")
        keys = random_count(rng) + [operator] + random_target(rng, operator)
        return keys + (random_typing(rng, False) if operator == "c" else [])
    if chance < 0.62:
        operator = rng.choice([["g", "u"], ["g", "U"], ["g", "~"], [">"], ["<lt>"]])
        return random_count(rng) + operator + random_target(rng, operator[-1])
    if chance < 0.70:
        return random_count(rng) + [rng.choice("xXDYp PJ~ppPPxx".replace(" ", ""))]
    if chance < 0.73:
        return random_count(rng) + ["r", rng.choice("Q日")]
    if chance < 0.80:
        entry = rng.choice("iaIAoOsSC")
        # A count too large for the text makes the last three fail.
        count = random_count(rng) if entry in "iaIAoO" else []
        return count + [entry] + random_typing(rng, True)
    if chance < 0.86:
        return random_count(rng) + [rng.choice([".", ".", "u", "<C-r>"])]
    keys = [rng.choice("vvV")]
    for _ in range(rng.randint(0, 3)):
        keys += random_count(rng) + (random_object(rng) if rng.random() < 0.3 else random_motion(rng))
    end = rng.choice(["d", "y", "c", "x", "p", "P", "o", "<Esc>", "J", "~", "u", "U", ">", "<lt>", "r", "D", "Y", "C", ""])
    if end == "r":
        keys += ["r", "Q"]
    elif end in ("o", ""):
        # Still selecting: Escape, which is left out again when it is the last key of a case.
        keys += [end, "<Esc>"] if end else ["<Esc>"]
    else:
        keys.append(end)
    return keys + (random_typing(rng, True) if end in ("c", "C") else [])


def random_keys(rng):
    keys = []
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        keys += random_command(rng)
    return keys[:-1] if keys[-1] == "<Esc>" and rng.random() < 0.1 else keys


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--count", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--out", required=True)
    chosen = arguments.parse_args()
    rng = random.Random(chosen.seed)
    with open(os.path.join(os.path.dirname(__file__), "may-differ.json"), encoding="utf-8") as known:
        may_differ = json.load(known)
    editors = [Vim(), Neovim()]
    cases = []
    left_out = 0
    try:
        for number in range(chosen.count):
            start, keys = random_start(rng), random_keys(rng)
            # What `.` and `;` repeat, and a register once written, cannot be cleared, only forgotten with the editor.
            if start["register"] is None or {".", ";", ","} & set(keys):
                for editor in editors:
                    editor.close()
                editors = [Vim(), Neovim()]
            ends = [run(editor, start, keys) for editor in editors]
            if ends[0] is None or ends[0] != ends[1]:
                left_out += 1
                continue
            case = {"id": f"random.{chosen.seed}#{number}", "start": start, "keys": "".join(keys), "end": ends[0]}
            if case["id"] in may_differ:
                case["may_differ"] = may_differ[case["id"]]
            cases.append(case | {"agree": "vim+nvim"})
    finally:
        for editor in editors:
            editor.close()
    about = "Random keys typed into real Vim and real Neovim; made by tests/oracle/generate.py."
    with open(chosen.out, "w", encoding="utf-8") as out:
        out.write(json.dumps({"about": about, "count": len(cases), "cases": []}, ensure_ascii=False)[:-2])
        out.write("\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]}\n")
    print(f"{len(cases)} cases in which Vim and Neovim agree, {left_out} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
