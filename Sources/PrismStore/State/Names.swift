import PrismProtocol

/// The names of namespaces and types, and the numbers that rows have for them.
struct Names {
  private(set) var namespaces: [Int: NamespaceName] = [:]
  private(set) var types: [Int64: ReportType] = [:]
  private var namespaceNumbers: [NamespaceName: Int] = [:]
  private var typeNumbers: [ReportType: Int64] = [:]
  var floors = NumberFloors(namespace: 1, type: 1)

  func number(of namespace: NamespaceName) -> Int? { namespaceNumbers[namespace] }
  func number(of type: ReportType) -> Int64? { typeNumbers[type] }
  var nextNamespace: Int { max(floors.namespace, (namespaces.keys.max() ?? 0) + 1) }
  var nextType: Int64 { max(floors.type, (types.keys.max() ?? 0) + 1) }

  mutating func add(_ namespace: NamespaceName, number: Int) {
    namespaces[number] = namespace
    namespaceNumbers[namespace] = number
  }

  mutating func add(_ type: ReportType, number: Int64) {
    types[number] = type
    typeNumbers[type] = number
  }
}
