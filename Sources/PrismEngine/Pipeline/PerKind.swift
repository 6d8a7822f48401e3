import PrismProtocol

/// One value for each kind of packet.
struct PerKind<Value> {
  private var values: [Value]

  init(each value: (RowKind) -> Value) { values = RowKind.all.map(value) }

  subscript(kind: RowKind) -> Value {
    get { values[kind.number] }
    _modify { yield &values[kind.number] }
  }
}

extension PerKind: Sendable where Value: Sendable {}
extension PerKind: Equatable where Value: Equatable {}
