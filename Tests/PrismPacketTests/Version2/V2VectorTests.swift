import Foundation
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

@Suite("Version 2: packets, receipts and keys that Python made")
struct V2VectorTests {
  @Test("a packet gives back its lines, its rows with their common information, and its payloads")
  func taken() throws {
    let vectors = try V2Vectors.load("packets")
    try #require(vectors.count == 31)
    for vector in vectors {
      let name = try #require(vector["name"]?.string)
      let packet = try V2Vectors.read(vector)
      let lines = (vector["lines"]?.array ?? []).compactMap(\.string)
      #expect(String(decoding: packet.metas.text, as: UTF8.self) == lines.joined(separator: "\n"), "\(name)")
      let rows = try packet.metas.merged().map { try Self.sorted(try JSONValue(parsing: $0)) }
      let expected = try vector["metas"]?.array?.map(Self.sorted)
      #expect(rows == expected, "\(name)")
      let payloads = (vector["payloads"]?.array ?? []).compactMap(\.string)
      #expect(packet.payloads.map { Hex.encode($0) } == payloads, "\(name)")
    }
  }

  /// Members by key: their order means nothing.
  private static func sorted(_ value: JSONValue) throws -> JSONValue {
    let members = try #require(value.object)
    return .object(members.sorted { $0.key < $1.key })
  }

  @Test("the answer to a question gives a dictionary, and no dictionary to another one") func dictionaries() throws {
    let vectors = try V2Vectors.load("dictionaries")
    try #require(vectors.count == 12)
    for vector in vectors {
      let (name, fields) = (vector["name"]?.string ?? "", V2Vectors.fields(vector))
      let question = try DictionaryQuestion(namespace: vector["namespace"]?.string) { fields[$0] }
      let answer = DictionaryAnswer(
        body: try V2Vectors.bytes(vector, "body"), mac: vector["answer"]?["Prism-Mac"]?.string)
      let key = Secret(try V2Vectors.bytes(vector, "key"))
      if let why = vector["why"]?.string, !why.isEmpty {
        #expect("\(name)") {
          try answer.dictionary(for: question, key: key)
        } throws: {
          ($0 as? PacketError)?.rawValue == why
        }
      } else {
        let dictionary = try answer.dictionary(for: question, key: key)
        #expect(Hex.encode(dictionary.bytes) == vector["dictionary"]?.string, "\(name)")
      }
    }
  }

  @Test("a packet that was changed, or is not a packet, is refused for its reason")
  func refused() throws {
    let vectors = try V2Vectors.load("packets-refused")
    try #require(vectors.count == 50)
    for vector in vectors {
      let name = try #require(vector["name"]?.string)
      let why = vector["why"]?.string
      #expect("\(name)") { try V2Vectors.read(vector) } throws: { ($0 as? PacketError)?.rawValue == why }
    }
  }

  @Test("headers that are not prism's are refused, among them each cipher that proves nothing") func headers() throws {
    let vectors = try V2Vectors.load("headers-refused")
    try #require(vectors.count == 37)
    for vector in vectors {
      let name = try #require(vector["name"]?.string)
      let why = vector["why"]?.string.flatMap { PacketError(rawValue: $0) }
      #expect("\(name)") {
        try V2Vectors.read(vector)
      } throws: {
        why == nil ? $0 is PacketHeaderFault : ($0 as? PacketError) == why
      }
    }
  }

  @Test("a receipt is that of Python, and of no other answer, packet or key")
  func receipts() throws {
    for vector in try V2Vectors.load("receipts") {
      var headers = try V2Vectors.headers(V2Vectors.fields(vector))
      let (key, answer) = (try V2Vectors.bytes(vector, "key"), try V2Vectors.bytes(vector, "answer"))
      let receipt = try PacketReceipt(key: Secret(key))
      let text = try #require(vector["receipt"]?.string)
      #expect(try receipt.text(for: headers, answer: answer) == text)
      #expect(receipt.isValid(text, for: headers, answer: answer))
      #expect(!receipt.isValid(text, for: headers, answer: answer + [0]))
      #expect(!receipt.isValid(text + " ", for: headers, answer: answer))
      #expect(!receipt.isValid(headers.packetID.description, for: headers, answer: answer))
      let other = try PacketReceipt(key: Secret(key.reversed()))
      #expect(!other.isValid(text, for: headers, answer: answer))
      headers.sentTime = 1
      #expect(!receipt.isValid(text, for: headers, answer: answer))
    }
  }

  @Test("a device's key is that of Python")
  func deviceKeys() throws {
    for vector in try V2Vectors.load("device-keys") {
      let (master, keyID) = (try V2Vectors.bytes(vector, "master"), try #require(vector["keyId"]?.string))
      let cipher = try #require(vector["cipher"]?.string.flatMap { Cipher(rawValue: $0) })
      let deviceID = try #require(vector["deviceId"]?.string)
      let key = try DeviceKey.derived(master: Secret(master), keyID: keyID, deviceID: deviceID, cipher: cipher)
      #expect(Hex.encode(key.bytes) == vector["key"]?.string)
    }
    #expect(throws: PacketError.keyLength) {
      try DeviceKey.derived(master: Secret([1]), keyID: "main", deviceID: "d", cipher: .aes128GCM)
    }
  }

  @Test("what Python sealed opens, and only as its own report")
  func sealed() throws {
    for vector in try V2Vectors.load("sealed-payloads") {
      let secret = try V2Vectors.bytes(vector, "privateKey")
      let key = try #require(SealingPrivateKey(secret))
      #expect(Hex.encode(key.publicKey.bytes) == vector["publicKey"]?.string)
      let sealed = try V2Vectors.bytes(vector, "sealed")
      let (deviceID, reportID) = (try #require(vector["deviceId"]?.string), try #require(vector["reportId"]?.string))
      let namespace = try #require(NamespaceName("shop"))
      var report = SealedReport(deviceID: deviceID, namespace: namespace, reportID: reportID)
      let payload = try SealedPayload.open(sealed, with: key, of: report, bytesMax: 100_000)
      #expect(Hex.encode(payload) == vector["payload"]?.string)
      report.reportID += "x"
      #expect(throws: PacketError.decryptionFailed) {
        try SealedPayload.open(sealed, with: key, of: report, bytesMax: 100_000)
      }
    }
  }

  @Test("columns become their lines, and blocks that say more or less than they hold are refused for their reason")
  func columns() throws {
    let vectors = try V2Vectors.load("columns")
    try #require(vectors.count == 94)
    for vector in vectors {
      let (name, why) = (vector["name"]?.string ?? "", vector["why"]?.string ?? "")
      if why.isEmpty {
        let lines = (vector["lines"]?.array ?? []).compactMap(\.string)
        let text = try V2Vectors.read(vector).metas.text
        #expect(String(decoding: text, as: UTF8.self) == lines.joined(separator: "\n"), "\(name)")
      } else {
        #expect("\(name)") { try V2Vectors.read(vector) } throws: { ($0 as? PacketError)?.rawValue == why }
      }
    }
  }

  @Test("the decoders in docs/decoders pass all vectors, and have under 100 lines each; those of columns have more")
  func decoders() throws {
    let folder = "\(V2Vectors.folder)/decoders"
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where !name.hasPrefix("_") {
      let lines = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8).split(separator: "\n").count
      #expect(lines < ["prism_columns.py": 200, "columns.h": 250][name, default: 100], "\(name)")
    }
    let (check, output) = (Process(), Pipe())
    check.executableURL = URL(filePath: "/usr/bin/python3")
    check.arguments = ["-B", "\(folder)/check.py"]
    check.standardOutput = output
    try check.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    check.waitUntilExit()
    #expect(check.terminationStatus == 0, "\(text)")
  }

  @Test("the decoder in Python opens what prism writes", arguments: Cipher.allCases, PacketEncoding.allCases)
  func opensWritten(cipher: Cipher, encoding: PacketEncoding) throws {
    var random = SeededRandom(seed: 9)
    let key = V2PacketTests.key(cipher)
    let writer = try PacketWriter(cipher: cipher, keyID: "main", key: key, encoding: encoding)
    for kind in RowKind.reports {
      let packet = try writer.write(
        V2PacketTests.headers(kind, count: 2, &random), metas: V2PacketTests.metas, payloads: V2PacketTests.payloads)
      var fields = packet.headers.fields
      if let mac = packet.mac { fields.append(("Prism-Mac", mac)) }
      let question = JSONValue.object([
        JSONValue.Member("headers", .object(fields.map { JSONValue.Member($0.name, .string($0.value)) })),
        JSONValue.Member("key", .string(Hex.encode(key.bytes))),
        JSONValue.Member("body", .string(Hex.encode(packet.body))),
      ])
      let program = """
        import json, sys
        sys.path.insert(0, "\(V2Vectors.folder)/decoders")
        import prism_packet
        packet = json.loads(sys.argv[1])
        key, body = bytes.fromhex(packet["key"]), bytes.fromhex(packet["body"])
        rows, payloads = prism_packet.open_packet(packet["headers"], body, key)
        print(json.dumps([rows, [payload.decode() for payload in payloads]], sort_keys=True))
        """
      let answer = try python(program, String(decoding: question.bytes, as: UTF8.self))
      let payloads = kind.hasPayload ? #"["hello hello hello", ""]"# : "[]"
      #expect(answer == #"[[{"A": "gr\u00f6\u00dfe", "n": 1}, {"A": 3, "n": 2}], \#(payloads)]"#)
    }
  }

  private func python(_ program: String, _ argument: String) throws -> String {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = ["-B", "-c", program, argument]
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return text.trimmingCharacters(in: .newlines)
  }
}
