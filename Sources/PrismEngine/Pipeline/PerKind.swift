import PrismProtocol

/// One value for each kind of packet.
struct PerKind<Value> {
  private var values: [Value]

  init(_ value: @autoclosure () -> Value) { values = RowKind.delivered.map { _ in value() } }
  init(each value: (RowKind) -> Value) { values = RowKind.delivered.map(value) }

  subscript(kind: RowKind) -> Value {
    get { values[Self.place(kind)] }
    _modify { yield &values[Self.place(kind)] }
  }

  private static func place(_ kind: RowKind) -> Int { kind == .records ? RowKind.all.count : kind.number }

  func contains(where predicate: (Value) -> Bool) -> Bool { values.contains(where: predicate) }
}

extension PerKind: Sendable where Value: Sendable {}
extension PerKind: Equatable where Value: Equatable {}
