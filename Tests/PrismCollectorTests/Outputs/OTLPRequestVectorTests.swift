import Foundation
import PrismBase
import PrismConfig
import PrismProtocol
import Testing

@testable import PrismCollector
@testable import PrismOutputs

/// Vectors/otlp-requests.json holds reports, and the bodies that a writer of another kind made of them: it parsed each meta to
/// a tree, and wrote the tree.
@Suite("Requests of the output otlp")
struct OTLPRequestVectorTests {
  struct Vector: CustomTestStringConvertible, Sendable {
    let json: JSONValue
    let reports: [StoredReport]
    var testDescription: String { json["name"]?.string ?? "" }
  }

  static let vectors: [Vector] = {
    guard let url = Bundle.module.url(forResource: "otlp-requests", withExtension: "json", subdirectory: "Vectors"),
      let file = try? Data(contentsOf: url), let list = try? JSONValue(parsing: file).array
    else { return [] }
    return list.map { json in
      let reports = (json["reports"]?.array ?? []).enumerated().map { report($1, id: Int64($0 + 1)) }
      return Vector(json: json, reports: reports)
    }
  }()

  private static func report(_ json: JSONValue, id: Int64) -> StoredReport {
    func text(_ name: String) -> String { json[name]?.string ?? "" }
    func bytes(_ name: String) -> [UInt8]? { json[name]?.string.flatMap { Base64.decode($0.utf8) } }
    return StoredReport(
      id: id, device: text("device"), namespace: text("namespace"), kind: "meta", type: text("type"),
      reportID: text("reportId"), createdTime: json["createdTime"]?.int.map { Int64($0) },
      receivedTime: 1_732_154_099_000, packetID: "packet-1", chainIsBroken: false,
      meta: bytes("metaBase64") ?? Array(text("meta").utf8), payload: bytes("payload"))
  }

  @Test("a request has the bytes that it always had", arguments: vectors)
  func bodies(vector: Vector) throws {
    for signal in OTLPSignal.allCases {
      let expected = vector.json["bodies"]?[signal.rawValue]
      let reports = vector.reports.filter { $0.signal == signal }
      #expect(reports.isEmpty == (expected == nil))
      guard let expected else { continue }
      let json = OTLPRequest.body(signal, reports, .json)
      #expect(String(decoding: json.bytes, as: UTF8.self) == expected["json"]?.string)
      let protobuf = OTLPRequest.body(signal, reports, .protobuf)
      #expect(Base64.encode(protobuf.bytes) == expected["protobuf"]?.string)
      #expect([json.mediaType, protobuf.mediaType] == ["application/json", "application/x-protobuf"])
    }
  }

  @Test("the vectors are there") func count() { #expect(Self.vectors.count == 32) }
}
