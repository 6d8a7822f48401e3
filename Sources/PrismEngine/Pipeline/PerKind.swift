import PrismProtocol

/// One value for each kind of packet.
struct PerKind<Value> {
  private var values: [Value]

  init(_ value: @autoclosure () -> Value) { values = RowKind.all.map { _ in value() } }
  init(each value: (RowKind) -> Value) { values = RowKind.all.map(value) }

  subscript(kind: RowKind) -> Value {
    get { values[kind.number] }
    _modify { yield &values[kind.number] }
  }

  func contains(where predicate: (Value) -> Bool) -> Bool { values.contains(where: predicate) }
}

extension PerKind: Sendable where Value: Sendable {}
extension PerKind: Equatable where Value: Equatable {}
