import PrismProtocol

/// The headers of a captured POST, `Name: value` a line; a request line among them is passed over.
struct CapturedHeaders {
  private var values: [String: String] = [:]

  init(_ bytes: [UInt8]) {
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      values[line[..<colon].lowercased()] = String(value.trimmingEnd())
    }
  }

  /// - Parameter name: in lower case.
  subscript(name: String) -> String? { values[name] }

  /// What the packet was bound to.
  /// - Throws: 64, naming the header that is missing or wrong.
  func packet() throws(Failure) -> (PacketContext, Cipher) {
    let kinds = ["application/vnd.prism.meta": ReportKind.meta, "application/vnd.prism.payload": .payload]
    let context = PacketContext(
      deviceID: try value("prism-device-id") { $0 }, namespace: try value("prism-namespace") { NamespaceName($0) },
      packetID: try value("prism-packet-id") { PacketID($0) }, kind: try value("content-type") { kinds[$0] })
    return (context, try value("prism-cipher") { Cipher(rawValue: $0) })
  }

  private func value<Value>(_ name: String, _ parse: (String) -> Value?) throws(Failure) -> Value {
    guard let text = self[name] else { throw .usage("--headers: `\(name)` is missing") }
    guard let value = parse(text) else { throw .usage("--headers: the value of `\(name)` is none that prism sends") }
    return value
  }
}

extension Substring {
  fileprivate func trimmingEnd() -> Substring {
    var result = self
    while let last = result.last, last == " " || last == "\t" { result.removeLast() }
    return result
  }
}
