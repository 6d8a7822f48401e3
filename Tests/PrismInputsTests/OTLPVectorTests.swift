import Foundation
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

/// Vectors/otlp.json holds requests with the JSON that protobuf's own library makes of them (make_otlp.py).
@Suite struct OTLPVectorTests {
  struct Vector: CustomTestStringConvertible, Sendable {
    let signal: OTLPSignal
    let protobuf: [UInt8]
    let request: JSONValue
    var testDescription: String { signal.rawValue }
  }

  static let vectors: [Vector] = {
    guard let url = Bundle.module.url(forResource: "otlp", withExtension: "json", subdirectory: "Vectors"),
      let file = try? Data(contentsOf: url), let list = try? JSONValue(parsing: file).array
    else { return [] }
    return list.compactMap { one in
      guard let signal = one["signal"]?.string.flatMap(OTLPSignal.init(rawValue:)),
        let protobuf = one["protobuf"]?.string.flatMap({ Base64.decode(Array($0.utf8)) }), let request = one["request"]
      else { return nil }
      return Vector(signal: signal, protobuf: protobuf, request: request)
    }
  }()

  @Test("there is a vector for each signal") func vectorsAreThere() {
    #expect(Self.vectors.map(\.signal) == OTLPSignal.allCases)
  }

  @Test("a record's meta is the JSON that protobuf's own library writes", arguments: vectors)
  func protobufBecomesJSON(vector: Vector) throws {
    let request = try DecodedOTLP(protobuf: vector.protobuf, vector.signal)
    let expected = Self.records(vector)
    let found = try request.groups.flatMap(\.records).map { try JSONValue(parsing: [0x7B] + $0.members + [0x7D]) }
    #expect(found.count == expected.count)
    for (found, expected) in zip(found, expected) { #expect(found.sorted == expected.sorted) }
  }

  @Test("both encodings of a request make the same reports", arguments: vectors)
  func encodingsAgree(vector: Vector) throws {
    let fromProtobuf = try DecodedOTLP(protobuf: vector.protobuf, vector.signal)
    let fromJSON = try DecodedOTLP(json: vector.request.bytes, vector.signal)
    #expect(fromProtobuf.groups.count == fromJSON.groups.count)
    for (one, other) in zip(fromProtobuf.groups, fromJSON.groups) {
      #expect(one.origin.namespace == other.origin.namespace)
      #expect(one.origin.serviceName == other.origin.serviceName)
      #expect(one.origin.serviceVersion == other.origin.serviceVersion)
      #expect(Self.tree(one.origin.resource) == Self.tree(other.origin.resource))
      #expect(Self.tree(one.scope) == Self.tree(other.scope))
      for (one, other) in zip(one.records, other.records) {
        #expect(one.time == other.time)
        #expect(one.eventName == other.eventName)
        #expect(one.exception == other.exception)
      }
    }
  }

  @Test("resource, scope, times and exceptions are found") func factsAreFound() throws {
    let vector = try #require(Self.vectors.first)
    let request = try DecodedOTLP(protobuf: vector.protobuf, .logs)
    let group = try #require(request.groups.first)
    #expect(group.origin.namespace == "shop")
    #expect(group.origin.serviceName == "shop")
    #expect(group.origin.serviceVersion == "4.2.0")
    #expect(Self.tree(group.origin.resource)?["schemaUrl"]?.string == "https://opentelemetry.io/schemas/1.27.0")
    #expect(Self.tree(group.scope)?["schemaUrl"]?.string == "https://example.org/scope")
    #expect(group.records.map(\.eventName) == ["order.paid", nil, nil])
    #expect(group.records.map(\.time) == [1_732_154_081_123, 1_732_154_081_123, nil])
    #expect(group.records[1].exception.type == "KeyError")
    #expect(group.records[1].exception.stacktrace?.hasPrefix("Traceback") == true)
    #expect(group.records[0].exception.isEmpty)
  }

  private static func tree(_ bytes: [UInt8]) -> JSONValue? { (try? JSONValue(parsing: bytes))?.sorted }

  private static func records(_ vector: Vector) -> [JSONValue] {
    let names: [OTLPSignal: (String, String, String)] = [
      .logs: ("resourceLogs", "scopeLogs", "logRecords"), .traces: ("resourceSpans", "scopeSpans", "spans"),
      .metrics: ("resourceMetrics", "scopeMetrics", "metrics"),
    ]
    guard let (resources, scopes, records) = names[vector.signal] else { return [] }
    return (vector.request[resources]?.array ?? []).flatMap { $0[scopes]?.array ?? [] }
      .flatMap { $0[records]?.array ?? [] }
  }
}

extension JSONValue {
  /// With the members of each object in the order of their keys, and numbers by value.
  var sorted: JSONValue {
    switch self {
    case .object(let members):
      .object(members.map { Member($0.key, $0.value.sorted) }.sorted { $0.key < $1.key })
    case .array(let elements): .array(elements.map(\.sorted))
    case .number(let text): .number(Double(text).map { String($0) } ?? text)
    case .null, .bool, .string: self
    }
  }
}
