import PrismConfig
import PrismProtocol

/// A request of OTLP/HTTP. Records that follow each other and have resource and scope in common share them.
struct OTLPRequest {
  private let signal: OTLPSignal
  private var resources: [(resource: JSONValue, scopes: [(scope: JSONValue, records: [JSONValue])])] = []

  /// - Parameter records: all of `signal`.
  init(_ signal: OTLPSignal, _ records: some Sequence<OTLPRecord>) {
    self.signal = signal
    for record in records { add(record) }
  }

  private mutating func add(_ record: OTLPRecord) {
    if resources.last?.resource != record.resource { resources.append((record.resource, [])) }
    let last = resources.count - 1
    if resources[last].scopes.last?.scope != record.scope { resources[last].scopes.append((record.scope, [])) }
    resources[last].scopes[resources[last].scopes.count - 1].records.append(record.record)
  }

  /// The body, and its media type.
  func body(_ encoding: CollectorConfiguration.Output.Encoding) -> (bytes: [UInt8], mediaType: String) {
    switch encoding {
    case .json: (text, "application/json")
    case .protobuf: (protobuf, "application/x-protobuf")
    }
  }

  /// The outer messages are alike for all signals: a list of resources (1), each with its resource (1) and scopes (2),
  /// each with its scope (1) and records (2).
  private var protobuf: [UInt8] {
    var request = ProtobufWriter()
    for resource in resources {
      var outer = Self.written(resource.resource, as: .resource)
      for scope in resource.scopes {
        var inner = Self.written(scope.scope, as: .scope)
        for record in scope.records {
          var writer = ProtobufWriter()
          writer.append(record, as: signal.message)
          inner.append(writer.bytes, 2)
        }
        outer.append(inner.bytes, 2)
      }
      request.append(outer.bytes, 1)
    }
    return request.bytes
  }

  /// A message as the first field of another one.
  private static func written(_ json: JSONValue, as message: OTLPMessage) -> ProtobufWriter {
    var (outer, inner) = (ProtobufWriter(), ProtobufWriter())
    inner.append(json, as: message)
    outer.append(inner.bytes, 1)
    return outer
  }

  var text: [UInt8] {
    let names = signal.lists
    let resources: [JSONValue] = resources.map { resource in
      let scopes: [JSONValue] = resource.scopes.map { scope in
        .object([.init("scope", scope.scope), .init(names.records, .array(scope.records))])
      }
      return .object([.init("resource", resource.resource), .init(names.scopes, .array(scopes))])
    }
    return JSONValue.object([.init(names.resources, .array(resources))]).bytes
  }
}
