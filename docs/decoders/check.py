#!/usr/bin/env python3
"""Holds the decoders in this folder to the vectors in ../vectors. Builds the C programs with cc.

usage: check.py [FOLDER]           FOLDER is for the programs that it builds; else a temporary one
"""
import json, pathlib, subprocess, sys, tempfile
import prism_keys, prism_packet

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["-lcrypto", "-lz", "-lzstd"]
failures, UNREAD = [], ("Prism-Version", "Prism-Key-Id")  # a receiver reads them, the decoder in C does not


def vectors(name):
    return json.loads((HERE.parent / "vectors" / f"{name}.json").read_text())


def expect(what, found, wanted):
    if found != wanted:
        failures.append(f"{what}: found {str(found)[:200]}, expected {str(wanted)[:200]}")


def in_python(vector):
    dictionary = bytes.fromhex(vector.get("dictionary", "")) or None
    key, body = bytes.fromhex(vector["key"]), bytes.fromhex(vector["body"])
    try:
        rows, payloads = prism_packet.open_packet(vector["headers"], body, key, dictionary)
    except prism_keys.Refused as why:
        return str(why)
    return rows, [payload.hex() for payload in payloads]


def in_c(program, vector, folder, line="{}: {}\n", more=""):
    lines = "".join(line.format(*header) for header in vector["headers"].items()) + more
    (folder / "headers").write_bytes(lines.encode())
    (folder / "body").write_bytes(bytes.fromhex(vector["body"]))
    (folder / "dictionary").write_bytes(bytes.fromhex(vector.get("dictionary", "")))
    arguments = [program, vector["key"], folder / "headers", folder / "body", folder / "dictionary"]
    ran = subprocess.run(arguments, capture_output=True, check=False)
    lines = ran.stdout.decode().split("\n")
    if ran.returncode != 0:
        return ran.stderr.decode().strip()
    split = lines.index("--")
    return lines[:split], lines[split + 1:-1]


def dictionary_in_python(vector):
    key, body = bytes.fromhex(vector["key"]), bytes.fromhex(vector["body"])
    try:
        return prism_packet.open_dictionary(vector["headers"], vector["namespace"], vector["answer"], body, key).hex()
    except prism_keys.Refused as why:
        return str(why)


def dictionary_in_c(program, vector, folder):
    (folder / "body").write_bytes(bytes.fromhex(vector["body"]))
    bound = prism_keys.context({**vector["headers"], **vector["answer"], "Prism-Namespace": vector["namespace"]})
    mac = vector["answer"].get("Prism-Mac", "")
    arguments = [program, "dictionary", vector["key"], vector["headers"]["Prism-Cipher"], bound.hex(), mac, folder / "body"]
    ran = subprocess.run(arguments, capture_output=True, check=False)
    return (ran.stdout or ran.stderr).decode().strip()


def run(folder):
    programs = {}
    for source in ("open_packet", "keys"):
        programs[source] = folder / source
        subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", programs[source], HERE / f"{source}.c",
                        *LIBRARIES], check=True)
    for vector in vectors("packets"):
        expect(f"Python, {vector['name']}", in_python(vector), (vector["metas"], vector["payloads"]))
        found = in_c(programs["open_packet"], vector, folder)
        expect(f"C, {vector['name']}", found, (vector["lines"], vector["payloads"]))
        found = in_c(programs["open_packet"], vector, folder, "{}:{} \r\n")
        expect(f"C, CRLF and other spaces, {vector['name']}", found, (vector["lines"], vector["payloads"]))
        for name in vector["headers"]:
            again = in_c(programs["open_packet"], vector, folder, more=f"{name.lower()}: x\n")
            expect(f"C, {name} twice, {vector['name']}", again in ("header", "contentType"), name not in UNREAD)
    for vector in vectors("columns"):
        rows = prism_packet.rows_of("\n".join(vector["lines"]).encode()) if not vector["why"] else []
        expect(f"Python, {vector['name']}", in_python(vector), vector["why"] or (rows, []))
        expect(f"C, {vector['name']}", in_c(programs["open_packet"], vector, folder), vector["why"] or (vector["lines"], []))
    for vector in vectors("packets-refused") + vectors("headers-refused"):
        expect(f"Python, {vector['name']}", in_python(vector), vector["why"])
        expect(f"C, {vector['name']}", in_c(programs["open_packet"], vector, folder), vector["why"])

    def keys(*words):
        return subprocess.run([programs["keys"], *words], capture_output=True, check=False).stdout.decode().strip()

    for vector in vectors("receipts"):
        key, answer, headers = bytes.fromhex(vector["key"]), bytes.fromhex(vector["answer"]), vector["headers"]
        expect("Python, receipt", prism_keys.is_receipt(vector["receipt"], headers, answer, key), True)
        expect("Python, other answer", prism_keys.is_receipt(vector["receipt"], headers, answer + b"x", key), False)
        packet_id = headers["Prism-Packet-Id"]
        expect("C, receipt", f"{packet_id} " + keys("receipt", vector["key"], vector["context"], vector["answer"]),
               vector["receipt"])
    for vector in vectors("device-keys"):
        master, words = bytes.fromhex(vector["master"]), (vector["keyId"], vector["deviceId"], vector["cipher"])
        expect("Python, device key", prism_keys.device_key(master, *words).hex(), vector["key"])
        expect("C, device key", keys("device-key", vector["master"], *words), vector["key"])
    for vector in vectors("sealed-payloads"):
        report = (vector["deviceId"], vector["namespace"], vector["reportId"])
        sealed, secret = bytes.fromhex(vector["sealed"]), bytes.fromhex(vector["privateKey"])
        expect("Python, sealed payload", prism_keys.unseal(sealed, secret, *report).hex(), vector["payload"])
        (folder / "sealed").write_bytes(sealed)
        expect("C, sealed payload", keys("unseal", vector["privateKey"], *report, folder / "sealed"), vector["payload"])


    for vector in vectors("dictionaries"):
        wanted = vector["why"] or vector["dictionary"]
        expect(f"Python, {vector['name']}", dictionary_in_python(vector), wanted)
        expect(f"C, {vector['name']}", dictionary_in_c(programs["keys"], vector, folder), wanted)


if len(sys.argv) > 1:
    run(pathlib.Path(sys.argv[1]))
else:
    with tempfile.TemporaryDirectory() as folder:
        run(pathlib.Path(folder))
print("\n".join(failures) or "all vectors pass, in Python and in C")
sys.exit(1 if failures else 0)
