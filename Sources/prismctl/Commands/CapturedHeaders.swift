import PrismPacket
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

extension Substring {
  fileprivate func trimmingEnd() -> Substring {
    var result = self
    while let last = result.last, last == " " || last == "\t" { result.removeLast() }
    return result
  }
}
