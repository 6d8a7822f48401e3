import PrismBase
import PrismPacket
import PrismProtocol

extension Command {
  static let decode = Command(
    words: ["decode"], summary: "take a captured packet apart, offline: metas as NDJSON, payloads to files",
    operands: ["BODY"],
    options: [
      Option("--key", "KEY-FILE", "the namespace's key"),
      Option("--headers", "FILE", "the POST's headers as they were sent, one a line"),
      Option("--payloads", "FOLDER", "the folder for payloads, as PACKET-ID.N (beside BODY)"),
    ],
    sockets: [],
    example: "prismctl decode --key main.key --headers packet.headers packet.body"
  ) { invocation throws(Failure) in
    guard let keyFile = invocation["--key"], let headersFile = invocation["--headers"] else {
      throw .usage("decode: --key FILE and --headers FILE are needed")
    }
    let bodyFile = invocation.operands[0]
    let headers = CapturedHeaders(try Files.read(headersFile))
    let packetHeaders = try headers.packet()
    let (key, body) = (try key(keyFile), try Files.read(bodyFile))
    let (metas, payloads): ([[UInt8]], [[UInt8]])
    do throws(PacketError) {
      let reader = try PacketReader(cipher: packetHeaders.format.cipher, key: key)
      let packet = try reader.read(packetHeaders, body: body, mac: headers["prism-mac"])
      (metas, payloads) = (try packet.metas.merged(), packet.payloads)
    } catch { throw Failure(Failure.no, "\(bodyFile): no packet of these headers and this key: \(error.rawValue)") }
    for meta in metas { print(String(decoding: meta, as: UTF8.self).printableJSON) }
    let folder =
      invocation["--payloads"]
      ?? bodyFile.split(separator: "/", omittingEmptySubsequences: false)
      .dropLast().joined(separator: "/")
    for (index, payload) in payloads.enumerated() {
      let path = (folder.isEmpty ? "" : folder + "/") + "\(packetHeaders.packetID).\(index + 1)"
      try Files.create(path, mode: 0o600, payload)
      Terminal.printError("payload \(index + 1): \(payload.count) bytes in \(path)")
    }
  }

  private static func key(_ path: String) throws(Failure) -> Secret {
    let digits = try Files.read(path).filter { $0 > UInt8(ascii: " ") }
    guard let key = Hex.decode(digits), [16, 32].contains(key.count) else {
      throw Failure(Failure.configuration, "\(path): a key file holds 32 or 64 hexadecimal digits")
    }
    return Secret(key)
  }
}

/// The headers of a captured POST, `Name: value` a line; a request line among them is passed over.
struct CapturedHeaders {
  private var values: [String: String] = [:]

  init(_ bytes: [UInt8]) {
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      values[line[..<colon].lowercased()] = String(line[line.index(after: colon)...]).trimmed
    }
  }

  /// - Parameter name: in lower case.
  subscript(name: String) -> String? { values[name] }

  /// - Throws: 64, naming the header that is missing or wrong.
  func packet() throws(Failure) -> PacketHeaders {
    guard let type = self["content-type"] else { throw .usage("--headers: `content-type` is missing") }
    guard let kind = RowKind.all.first(where: { $0.contentType == type }) else {
      throw .usage("--headers: the value of `content-type` is not one that prism sends")
    }
    do throws(PacketHeaderFault) {
      return try PacketHeaders(kind: kind) { name in self[name].map { [$0] } ?? [] }
    } catch {
      throw .usage("--headers: `\(error.name)` is \(error.isMissing ? "missing" : "not one that prism sends")")
    }
  }
}
