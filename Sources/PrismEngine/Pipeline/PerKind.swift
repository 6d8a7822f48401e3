import PrismProtocol

/// One value for metas and one for payloads.
struct PerKind<Value> {
  var meta: Value, payload: Value

  init(_ value: @autoclosure () -> Value) { (meta, payload) = (value(), value()) }
  init(each value: (ReportKind) -> Value) { (meta, payload) = (value(.meta), value(.payload)) }

  subscript(kind: ReportKind) -> Value {
    get {
      switch kind {
      case .meta: meta
      case .payload: payload
      }
    }
    _modify {
      switch kind {
      case .meta: yield &meta
      case .payload: yield &payload
      }
    }
  }
}

extension PerKind: Sendable where Value: Sendable {}
extension PerKind: Equatable where Value: Equatable {}
