public import PrismProtocol

/// A packet in a file, for a machine without a network (docs/carrying.md). The file is the POST as HTTP/1.1 would carry it,
/// without its `Host` and `Authorization`. Its head has lines of ASCII that end with CR LF, and ends with an empty one.
public struct CarriedPacket: Sendable, Equatable {
  /// The end of a file's name.
  public static let fileSuffix = ".packet"
  /// Of a file's head at most.
  public static let headBytesMax = 8192

  /// The headers of the packet.
  public let headers: PacketHeaders
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public let mac: String?
  /// Encrypted.
  public let body: [UInt8]

  public init(headers: PacketHeaders, mac: String?, body: [UInt8]) {
    (self.headers, self.mac, self.body) = (headers, mac, body)
  }

  /// The file's name without its folder: namespace, kind and id, so that no two packets have one name.
  public var fileName: String {
    "\(headers.namespace)-\(headers.kind.name)-\(headers.packetID)\(Self.fileSuffix)"
  }

  /// The packet that a file of this name should hold; nil for another name.
  public static func id(inFileName name: String) -> PacketID? {
    guard name.hasSuffix(fileSuffix) else { return nil }
    return PacketID(String(name.dropLast(fileSuffix.count).suffix(36)))
  }

  /// The headers of the POST but `Host`, `Content-Length` and `Authorization`.
  public var fields: [(name: String, value: String)] {
    var fields = headers.fields
    if let mac { fields.append(("Prism-Mac", mac)) }
    return fields
  }

  /// The content of the file.
  public var fileBytes: [UInt8] {
    var head = "POST \(headers.kind.path) HTTP/1.1\r\n"
    for field in fields + [("Content-Length", String(body.count))] { head += "\(field.name): \(field.value)\r\n" }
    return Array((head + "\r\n").utf8) + body
  }

  /// - Throws: for a file that is no packet, or only a part of one.
  public init(fileBytes bytes: [UInt8]) throws(CarriedPacketFault) {
    let end = Array("\r\n\r\n".utf8)
    guard let head = bytes.prefix(Self.headBytesMax).firstRange(of: end) else { throw .noHead }
    let lines = String(decoding: bytes[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n").map(String.init)
    guard let kind = RowKind.reports.first(where: { lines[0] == "POST \($0.path) HTTP/1.1" }) else { throw .noHead }
    let fields = try lines.dropFirst().map { (line) throws(CarriedPacketFault) in try Self.field(line) }
    let values = { (name: String) in fields.filter { $0.name == name }.map(\.value) }
    do throws(PacketHeaderFault) { headers = try PacketHeaders(kind: kind, values) } catch { throw .header(error) }
    body = Array(bytes[head.upperBound...])
    guard let length = values("content-length").first.flatMap({ Int($0) }) else { throw .noHead }
    guard body.count == length else { throw .length(found: body.count, named: length) }
    mac = values("prism-mac").first
  }

  private static func field(_ line: String) throws(CarriedPacketFault) -> (name: String, value: String) {
    guard let colon = line.firstRange(of: ": ") else { throw .noHead }
    return (line[..<colon.lowerBound].lowercased(), String(line[colon.upperBound...]))
  }
}

/// Why a file is no carried packet.
public enum CarriedPacketFault: Error, Sendable, Equatable, CustomStringConvertible {
  case noHead
  case header(PacketHeaderFault)
  case length(found: Int, named: Int)

  public var description: String {
    switch self {
    case .noHead: "is no packet that `prismctl carry` wrote"
    case .header(let fault): "is no packet of this version: \(fault)"
    case .length(let found, let named):
      "is a part of a packet: its body has \(found) bytes of \(named); copy the file again, or carry again"
    }
  }
}
