import PrismConfig
import PrismProtocol

/// The monitor list of a namespace, prepared for looking up.
struct ListedTypes {
  let all: [ListedType]
  /// Of entries that are no patterns.
  let indexByName: [String: Int]

  var count: Int { all.count }

  init(_ configuration: NamespaceConfiguration, _ tools: FilterTools) {
    let types = configuration.monitorList.map { ListedType($0, in: configuration.name, tools) }
    indexByName = Dictionary(
      types.enumerated().filter { !$0.element.rowType.type.isPattern }
        .map { ($0.element.rowType.type.text, $0.offset) },
      uniquingKeysWith: { first, _ in first })
    all = types
  }
}
