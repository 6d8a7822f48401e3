import PrismProtocol

/// A request of OTLP/HTTP in JSON. Records that follow each other and have resource and scope in common share them.
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
