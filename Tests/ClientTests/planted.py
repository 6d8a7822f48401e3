"""Programs with two planted bugs each in five languages, and their builds: five versions in which lines and functions move."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rig import PROGRAMS, ROOT

VERSIONS = range(1, 6)
APP = "till-{}"
NUMBERS = {version: f"2.{version}.0" for version in VERSIONS}
# The parts between blank lines change places from version to version; `BUG A` and `BUG B` mark the lines that fail.
SOURCES = {
    "c": ("till.c", """
#include <prism.h>
#include <stdio.h>
#include <stdlib.h>
struct cart { int count; int *items; };
static struct cart *volatile open_cart; /* it is never set */
static int total(const struct cart *cart, int n);
static int pay(int n);
static void check(int stock);
static int refund(int n);

static int total(const struct cart *cart, int n) {
  int sum = n;
  for (int i = 0; i < cart->count; i++) sum += cart->items[i]; /* BUG A */
  return sum;
}

static int pay(int n) {
  int sum = total(open_cart, n);
  printf("%d\\n", sum);
  return sum;
}

static void check(int stock) {
  if (stock < 0) {
    fprintf(stderr, "stock %d\\n", stock);
    abort(); /* BUG B */
  }
}

static int refund(int n) {
  check(-n);
  return printf("%d\\n", n);
}

int main(int count, char **words) {
  prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
  options.app_name = APP;
  options.app_version = VERSION;
  if (prism_crash_install(&options)) return 2;
  return words[1][0] == 'A' ? pay(count) : refund(count);
}
"""),
    "cpp": ("till.cpp", """
#include <prism.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
namespace till {
template <class T> struct Cart {
  T *items;
  size_t count;
  T total() const;
};
struct Stock {
  std::vector<int> left;
  virtual int take(const std::string &name, size_t n) const;
};
}
static int *volatile shelf; // it is never set

template <class T> T till::Cart<T>::total() const {
  T sum{};
  for (size_t i = 0; i < count; i++) sum += items[i]; // BUG A
  return sum;
}

int till::Stock::take(const std::string &name, size_t n) const {
  int found = left.at(n); // BUG B
  std::printf("%s %d\\n", name.c_str(), found);
  return found;
}

template <class T> static int pay(T *items, size_t n) {
  till::Cart<T> cart{items, n};
  T sum = cart.total();
  std::printf("%d\\n", int(sum));
  return int(sum);
}

static int refund(size_t n) {
  till::Stock stock;
  stock.left.push_back(1);
  int left = stock.take("paper", n);
  return left + 1;
}

int main(int count, char **words) {
  prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
  options.app_name = APP;
  options.app_version = VERSION;
  if (prism_crash_install(&options)) return 2;
  return words[1][0] == 'A' ? pay(shelf, size_t(count)) : refund(size_t(count));
}
"""),
    "rust": ("till.rs", """
use std::ffi::{c_char, CString};
#[repr(C)]
struct CrashOptions {
    size: usize,
    folder: *const c_char,
    name_space: *const c_char,
    kind: *const c_char,
    app_name: *const c_char,
    app_version: *const c_char,
    app_build: *const c_char,
}
extern "C" {
    fn prism_crash_install(options: *const CrashOptions) -> *const c_char;
}

struct Cart<T> {
    items: Vec<T>,
}
impl<T: Copy + Into<u64>> Cart<T> {
    fn total(&self, n: usize) -> u64 {
        let last: u64 = self.items[n].into(); // BUG A
        last + n as u64
    }
}

struct Stock {
    left: Option<Box<u64>>,
}
impl Stock {
    fn take(&self, n: u64) -> u64 {
        let left = self.left.as_ref().unwrap(); // BUG B
        **left - n
    }
}

fn pay(n: usize) -> u64 {
    let cart = Cart { items: vec![1u32; n - 1] };
    let sum = cart.total(n);
    println!("{sum}");
    sum
}

fn refund(n: usize) -> u64 {
    let stock = Stock { left: if n > 9 { Some(Box::new(1)) } else { None } };
    let left = stock.take(n as u64);
    println!("{left}");
    left
}

fn main() {
    let (app, version) = (CString::new(APP).unwrap(), CString::new(VERSION).unwrap());
    let none = std::ptr::null();
    let options = CrashOptions {
        size: std::mem::size_of::<CrashOptions>(), folder: none, name_space: none, kind: none,
        app_name: app.as_ptr(), app_version: version.as_ptr(), app_build: none,
    };
    if !unsafe { prism_crash_install(&options) }.is_null() {
        std::process::exit(2);
    }
    let words: Vec<String> = std::env::args().collect();
    let sum = if words[1] == "A" { pay(words.len()) } else { refund(words.len()) };
    std::process::exit(sum as i32);
}
"""),
    "swift": ("main.swift", """
import CPrism

struct Cart<Item: BinaryInteger> {
  var items: [Item]
  func total(_ n: Int) -> Int {
    let last = Int(items[n])  // BUG A
    return last + n
  }
}

final class Stock {
  var left: [String: Int] = [:]
  func take(_ name: String) -> Int {
    let found = left[name]!  // BUG B
    return found - 1
  }
}

func pay(_ n: Int) -> Int {
  let cart = Cart(items: [Int32](repeating: 1, count: n))
  let sum = cart.total(n)
  print(sum)
  return sum
}

func refund(_ n: Int) -> Int {
  let stock = Stock()
  if n > 9 { stock.left["paper"] = n }
  let left = stock.take("paper")
  print(left)
  return left
}

var options = prism_crash_options()
options.size = MemoryLayout<prism_crash_options>.size
let fault = APP.withCString { app in
  VERSION.withCString { version in
    (options.app_name, options.app_version) = (app, version)
    return prism_crash_install(&options)
  }
}
guard fault == nil else { fatalError("no spool") }
_ = CommandLine.arguments[1] == "A" ? pay(CommandLine.arguments.count) : refund(CommandLine.arguments.count)
"""),
    "python": ("till.py", """
import sys

import prism

class Stock:
    def __init__(self):
        self.left = {}

    def take(self, name):
        return self.left[name] - 1  # BUG B

def total(items, n):
    return sum(items) / (n - len(sys.argv))  # BUG A

def pay(n):
    return total([1, 2], n)

def refund(n):
    return Stock().take("paper") + n

prism.install_excepthook(prism.Client(app_name=APP, app_version=VERSION))
pay(len(sys.argv)) if sys.argv[1] == "A" else refund(len(sys.argv))
"""),
}
# By language and bug: the functions of the key.
KEYS = {
    ("c", "A"): ["total", "pay", "main", "in till"], ("c", "B"): ["check", "refund", "main", "in till"],
    ("cpp", "A"): ["till::Cart::total", "pay", "main"], ("cpp", "B"): ["till::Stock::take", "refund", "main"],
    ("rust", "A"): ["till::Cart::total", "till::pay", "till::main", "main"],
    ("rust", "B"): ["till::Stock::take", "till::refund", "till::main", "main"],
    ("swift", "A"): ["till.Cart.total", "till.pay", "main"], ("swift", "B"): ["till.Stock.take", "till.refund", "main"],
    ("python", "A"): ["total till.py", "pay till.py", "<module> till.py", "in till-python"],
    ("python", "B"): ["take till.py", "refund till.py", "<module> till.py", "in till-python"],
}
SIGNALS = {
    ("c", "A"): {signal.SIGSEGV}, ("cpp", "A"): {signal.SIGSEGV}, ("swift", "A"): {signal.SIGILL, signal.SIGTRAP},
    ("swift", "B"): {signal.SIGILL, signal.SIGTRAP},
}
FLAGS = {
    "c": ["-O2", "-O2", "-O0", "-O2", "-O3"], "cpp": ["-O2", "-O2", "-O0", "-Os", "-O2"],
    "rust": ["-Copt-level=3", "-Copt-level=3", "-Copt-level=0", "-Copt-level=3", "-Copt-level=s"],
    "swift": ["-O", "-O", "-Onone", "-O", "-Osize"],
}
COMMENTS = {"python": "#"}


@dataclass
class Build:
    """One version of one program, as it is shipped."""

    language: str
    version: int
    command: list[str]
    lines: dict[str, int]
    """Of the bugs."""
    debug: Path | None = None

    @property
    def app(self) -> str:
        return APP.format(self.language)

    @property
    def number(self) -> str:
        return NUMBERS[self.version]


def languages() -> list[str]:
    """Those whose compiler is here."""
    tools = {"c": "cc", "cpp": "c++", "rust": "rustc", "swift": "swiftc", "python": sys.executable}
    found = [language for language in SOURCES if shutil.which(tools[language])]
    for language in set(SOURCES) - set(found):
        print(f"NOT RUN: the planted bugs in {language}: there is no {tools[language]}", file=sys.stderr)
    return found


def moved(text: str, language: str, version: int, choice: random.Random) -> str:
    """The source of a version: further lines, and functions in another order. The first part stays the first, the last the last."""
    word = COMMENTS.get(language, "//")
    first, *parts, last = re.split(r"\n\n(?=[^ \n])", text.strip())
    if version == 2:
        first = f"{word} a line\n" * choice.randrange(1, 40) + first
    if version >= 4:
        choice.shuffle(parts)
    if version >= 3:
        parts.insert(choice.randrange(len(parts) + 1), further(language, choice.randrange(2, 30)))
    return "\n\n".join([first, *parts, last]) + "\n"


def further(language: str, count: int) -> str:
    """A function that no earlier version has; its code stays in the program."""
    body = {
        "c": "  for (int i = 0; i < n; i++) n += rand() % (i + {});\n", "rust": "    n = n.rotate_left({}) ^ 7;\n",
        "swift": "  n = (n << 3) ^ {}\n", "python": "    n += {}\n"}.get(language, "  n += rand() % {};\n")
    lines = "".join(body.format(place + 3) for place in range(count))
    return {
        "c": f"__attribute__((used)) int further(int n) {{\n{lines}  return n;\n}}",
        "cpp": f"__attribute__((used)) int further(int n) {{\n{lines}  return n;\n}}",
        "rust": f"#[no_mangle]\npub extern \"C\" fn further(mut n: u64) -> u64 {{\n{lines}    n\n}}",
        "swift": f"public func further(_ start: Int) -> Int {{\n  var n = start\n{lines}  return n\n}}",
        "python": f"def further(n):\n{lines}    return n",
    }[language]


def build(folder: Path, language: str, version: int, choice: random.Random) -> Build:
    """Compiles a version, strips it, and keeps its debug file apart."""
    name, text = SOURCES[language]
    place = folder / f"{language}-{version}"
    place.mkdir()
    text = moved(text, language, version, choice)
    (app, number) = (APP.format(language), NUMBERS[version])
    if language in ("c", "cpp"):
        text = f'#define APP "{app}"\n#define VERSION "{number}"\n' + text
    else:
        text = re.sub(r"\bAPP\b", f'"{app}"', re.sub(r"\bVERSION\b", f'"{number}"', text))
    source, program = place / name, place / "till"
    source.write_text(text)
    lines = {bug: next(n for n, line in enumerate(text.splitlines(), 1) if f"BUG {bug}" in line) for bug in "AB"}
    if language == "python":
        return Build(language, version, [sys.executable, str(source)], lines)
    library, flag = folder / "prism.o", FLAGS[language][version - 1]
    commands = {
        "c": ["cc", "-g", flag, "-I", ROOT / "clients/c", source, library, "-pthread", "-o", program],
        "cpp": ["c++", "-g", flag, "-I", ROOT / "clients/c", source, library, "-pthread", "-o", program],
        "rust": ["rustc", "-g", flag, "-Cpanic=abort", "-Awarnings", f"-Clink-arg={library}", "-Clink-arg=-Wl,--build-id", source,
                 "-o", program],
        "swift": ["swiftc", "-swift-version", "5", "-g", flag, "-Xllvm", "-generate-arange-section", "-Xlinker", "--build-id",
                  "-I", ROOT / "Sources/CPrism/include", "-Xcc", f"-fmodule-map-file={PROGRAMS}/CPrism.build/module.modulemap",
                  source, library, "-o", program],
    }
    ran = subprocess.run(commands[language], capture_output=True, text=True, cwd=place)
    if ran.returncode:
        raise AssertionError(f"{language} {version}: {ran.stderr}")
    debug = place / "till.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    return Build(language, version, [str(program)], lines, debug)


def build_all(folder: Path, choice: random.Random) -> list[Build]:
    subprocess.run(["cc", "-O2", "-c", ROOT / "clients/c/prism.c", "-o", folder / "prism.o"], check=True)
    return [build(folder, language, version, choice) for language in languages() for version in VERSIONS]


def crash(one: Build, bug: str, environment: dict[str, str]) -> None:
    """Runs a program into one of its bugs."""
    ran = subprocess.run([*one.command, bug], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    wanted = {-number for number in SIGNALS.get((one.language, bug), {signal.SIGABRT})} if one.language != "python" else {1}
    if ran.returncode not in wanted:
        raise AssertionError(f"{one.app} {one.number} {bug} ends with {ran.returncode}: {ran.stderr}")
