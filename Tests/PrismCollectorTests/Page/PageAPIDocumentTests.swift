import Foundation
import PrismConfig
import PrismHTTP
import Testing

@testable import PrismCollector

@Suite("docs/api.yaml and the code")
struct PageAPIDocumentTests {
  private let document: YAMLNode

  init() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/api.yaml")
    document = try #require(YAMLParser.parse(Array(try Data(contentsOf: path))).root)
  }

  /// OpenAPI has no word for a part that takes slashes.
  private static func path(_ route: PageRoute) -> String { route.path.replacing("{+", with: "{") }

  @Test("each path and method of the code is documented, and no other")
  func paths() throws {
    let documented = try #require(document["paths"]).entries.flatMap { path in
      path.node.entries.map { "\($0.key.uppercased()) \(path.key)" }
    }
    #expect(Set(documented) == Set(PageRoutes.all.map { "\($0.method.rawValue) \(Self.path($0))" }))
    #expect(documented.count == PageRoutes.all.count)
  }

  @Test("each parameter of the code is documented, and no other", arguments: PageRoutes.all.indices)
  func parameters(index: Int) throws {
    let route = PageRoutes.all[index]
    let operation = try #require(document["paths"]?[Self.path(route)]?[route.method.rawValue.lowercased()])
    let documented = try (operation["parameters"]?.elements ?? []).map { try resolved($0) }
    let names = { (place: String) in
      documented.filter { $0["in"]?.text == place }.compactMap { $0["name"]?.text }.sorted()
    }
    #expect(names("query") == route.parameters.sorted(), "\(route.path)")
    let parts = Self.path(route).split(separator: "/").filter { $0.hasPrefix("{") }
    let inPath = parts.map { String($0.dropFirst().dropLast()) }
    #expect(names("path") == inPath.sorted())
  }

  @Test("each reference leads to something")
  func references() throws {
    func check(_ node: YAMLNode) throws {
      if let target = node["$ref"]?.text { _ = try #require(find(target), "\(target)") }
      for entry in node.entries { try check(entry.node) }
      for element in node.elements { try check(element) }
    }
    try check(document)
  }

  private func resolved(_ node: YAMLNode) throws -> YAMLNode {
    guard let target = node["$ref"]?.text else { return node }
    return try #require(find(target))
  }

  private func find(_ reference: String) -> YAMLNode? {
    reference.split(separator: "/").dropFirst().reduce(document as YAMLNode?) { $0?[String($1)] }
  }
}

extension YAMLNode {
  fileprivate var entries: [YAMLEntry] { if case .mapping(let entries) = value { entries } else { [] } }
  fileprivate var elements: [YAMLNode] { if case .sequence(let nodes) = value { nodes } else { [] } }
  fileprivate var text: String? { if case .scalar(let scalar) = value { scalar.text } else { nil } }
  fileprivate subscript(key: String) -> YAMLNode? { entries.first { $0.key == key }?.node }
}
