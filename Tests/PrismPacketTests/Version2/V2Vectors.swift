import Foundation
import PrismBase
import PrismProtocol
import Testing

@testable import PrismPacket

/// The vectors in docs/vectors, which an encoder in Python made.
enum V2Vectors {
  static let folder = "/" + #filePath.split(separator: "/Tests/")[0].drop { $0 == "/" } + "/docs"

  static func load(_ name: String) throws -> [JSONValue] {
    let bytes = try Data(contentsOf: URL(filePath: "\(folder)/vectors/\(name).json"))
    let value = try JSONValue(parsing: Array(bytes), depthMax: 8, valuesMax: 100_000)
    return try #require(value.array)
  }

  static func bytes(_ value: JSONValue, _ name: String) throws -> [UInt8] {
    try #require(value[name]?.string.flatMap { Hex.decode($0) })
  }

  /// The headers of a vector, by name in lower case.
  static func fields(_ value: JSONValue) -> [String: String] {
    var fields: [String: String] = [:]
    for member in value["headers"]?.object ?? [] { fields[member.key.lowercased()] = member.value.string }
    return fields
  }

  static func headers(_ fields: [String: String]) throws -> PacketHeaders {
    let kind = fields["content-type"] == PacketHeaders.contentType(.payload) ? RowKind.payload : .meta
    return try PacketHeaders(kind: kind) { name in fields[name].map { [$0] } ?? [] }
  }

  /// The packet that a receiver reads from a vector.
  static func read(_ value: JSONValue) throws -> ReadPacket {
    let fields = fields(value)
    let headers = try headers(fields)
    let dictionary = value["dictionary"]?.string.flatMap(Hex.decode).flatMap { CompressionDictionary($0) }
    let reader = try PacketReader(
      cipher: headers.format.cipher, key: Secret(try bytes(value, "key")),
      dictionary: headers.format.dictionaryID == nil ? nil : dictionary)
    return try reader.read(headers, body: try bytes(value, "body"), mac: fields["prism-mac"])
  }
}
