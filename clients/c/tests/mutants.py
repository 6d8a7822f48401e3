"""Plants bugs into prism.c, each of which the named test must find: `make -C clients/c mutants`."""

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
MUTANTS = [
    ("a damaged record is taken", "record_crc(header, w->scratch, *length) == get_u32(header + 8)", "true",
     "a_damaged_spool_costs_one_record"),
    ("one damaged record costs the rest", "uint64_t next = find_magic(s, *offset + 1);", "uint64_t next = s->end;",
     "a_damaged_spool_costs_one_record"),
    ("the bound is not held", "if (want > left) want = left;", "", "the_spool_is_bounded"),
    ("an answered record is sent again", "put_u32(state, RECORD_DONE);", "put_u32(state, RECORD_WAITING);",
     "refusals_are_told"),
    ("a segment of a living program is taken over", "s->file >= 0 && flock(s->file, LOCK_EX | LOCK_NB) == 0 && fstat",
     "s->file >= 0 && fstat", "programs_share_a_spool"),
    ("what was not answered is forgotten with the connection", "    if (!e.source) {\n      memmove",
     "    if (false) {\n      memmove", "a_lost_connection"),
    ("a retriable refusal is final", "{\"unknown\", \"busy\", \"disk_full\", \"internal\", \"store_full\"", "{\"busy\", \"disk_full\", \"store_full\"", "refusals_are_told"),
    ("a refusal is stored", "e->is_refused ? PRISM_REFUSED : PRISM_STORED", "PRISM_STORED", "refusals_are_told"),
    ("a child sends what its parent queued",
     "    madvise(c->queue.base, c->queue.capacity, MADV_DONTNEED);\n    atomic_store(&c->queue.head, 0);\n"
     "    atomic_store(&c->queue.tail, 0);\n", "", "a_child_goes_on"),
    ("a child keeps its parent's connection open", "if (c->work) close_inherited(c->work);", "", "a_child_goes_on"),
    ("a child takes its parent's ids",
     "make_id_prefix(c->id_prefix);\n    atomic_store(&c->is_started", "atomic_store(&c->is_started", "a_child_goes_on"),
    ("a line feed in a meta ends the request", "if (feed) position = ring_write(r, position, \" \", 1), part++;",
     "if (feed) position = ring_write(r, position, \"\\n\", 1), part++;", "a_report_is_stored"),
    ("a meta that is not JSON passes", "if (!take(&c, '{') || take(&c, '}') || !take_members(&c, '}', 1)) return false;",
     "return true;", "metas_are_checked"),
    ("a lone surrogate passes", "if (code >= 0xDC00 && code <= 0xDFFF) return 0;", "", "metas_are_checked"),
    ("a mute daemon keeps reports in memory", "STALL_SPOOL = 2000", "STALL_SPOOL = 2000000", "a_mute_daemon"),
    ("the end drops what is in memory", "  drain(w);\n  expire", "  expire", "a_mute_daemon"),
    ("a full queue takes more", "if (tail - head + bytes > r->capacity) return false;", "", "the_spool_is_bounded"),
    ("a report is published before it is copied",
     "  return PRISM_QUEUED;\n}\n\nstatic prism_result wait_for_answer",
     "  ring_write(&c->queue, position + RING_HEADER, \"{\", 1);\n  return PRISM_DROPPED;\n}\n\n"
     "static prism_result wait_for_answer", "a_report_is_stored"),
    ("the payload appears after its report",
     "if (payload && !write_file(folder, stem, \".payload.tmp\", \".payload\", payload, payload_bytes)) return PRISM_SYSTEM;",
     "", "a_crash_is_written"),
    ("a crash begins in its handler", "while (first < count && (uintptr_t)found[first] != place) first++;", "",
     "a_crash_begins_where_it_happened"),
    ("a wild jump has no caller", "    on_crash_step(find_caller, &stack);\n", "", "a_crash_begins_where_it_happened"),
    ("a damaged stack ends the report", "siglongjmp(crashing.escape, 1);", "abort();", "a_crash_begins_where_it_happened"),
    ("a crash is installed without its spool", ": prism_crash_open(options.folder, options.name_space, options.type)",
     ": PRISM_STORED", "crashes_are_installed_alone"),
    ("a frame has no name", "stack->names[i] = function_at(module, address);", ";", "a_crash_begins_where_it_happened"),
    ("long words push the frames out", "if (most > CRUMBS_JSON_BYTES) most", "most", "a_crash_with_long_words_is_reported"),
    ("notes are read beyond their end", "next > bytes) return;", "false) return;", "build_ids_are_read"),
    ("a lost answer to a put is final", "result = last;\n    if (left <= pause) break;", "result = last;\n    break;",
     "a_record_is_asked_for"),
    ("a refusal for good is asked for again", "if (strcmp(code, codes[i]) == 0) return true;\n  return false;\n}\n\nstatic prism_result ask(",
     "if (strcmp(code, codes[i]) == 0) return true;\n  return true;\n}\n\nstatic prism_result ask(", "a_record_is_asked_for"),
    ("fields may end the request", "if (!take(&c, '{') || !take_members(&c, '}', 1)) return false;\n  skip_space(&c);\n  return c.next == c.end;\n}\n\n/* The request",
     "if (!take(&c, '{') || !take_members(&c, '}', 1)) return false;\n  return true;\n}\n\n/* The request",
     "arguments_of_records"),
    ("a watch tells again what is known", "if (found.is_watch && found.generation == watch->generation) return true;", "",
     "a_watch_goes_on"),
    ("a watch ends with its connection", "pause = smaller(pause * 2, WATCH_RETRY_MAX);", "break;", "a_watch_goes_on"),
    ("a child keeps its parent's watch connected", "    close_wires(c);\n", "", "a_child_leaves_the_watch"),
    ("a deadline is not kept", "if (!is_end && w->until > now) {", "if (!is_end) {", "an_answer_may_be_called_back"),
]


def is_found(mutant: tuple[str, str, str, str]) -> str:
    """"" if the test finds the bug, else what happened."""
    name, old, new, test = mutant
    text = (SOURCE / "prism.c").read_text()
    if text.count(old) != 1:
        return f"{name}: its place is there {text.count(old)} times"
    with tempfile.TemporaryDirectory(prefix="prism-mutant-") as folder:
        (Path(folder) / "prism.c").write_text(text.replace(old, new))
        shutil.copy(SOURCE / "prism.h", folder)
        shutil.copytree(SOURCE / "tests", Path(folder) / "tests")
        program = f"{folder}/test"
        # A test that waits for good is a find too.
        patience = ["-DPATIENCE_MS=8000"]
        built = subprocess.run(
            ["cc", "-w", "-O1", *patience, "-I", folder, f"{folder}/tests/test_prism.c", "-pthread", "-o", program],
            capture_output=True, text=True)
        if built.returncode != 0:
            return f"{name}: it does not compile: {built.stderr[:300]}"
        try:
            ran = subprocess.run([program, test], capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            return ""
        return "" if ran.returncode != 0 else f"{name}: {test} did not find it"


def main() -> int:
    with ThreadPoolExecutor(2) as pool:
        missed = [line for line in pool.map(is_found, MUTANTS) if line]
    print("\n".join([*missed, f"{len(MUTANTS) - len(missed)} of {len(MUTANTS)} planted bugs were found"]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
