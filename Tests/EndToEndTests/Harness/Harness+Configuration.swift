import Foundation
import PrismProtocol
import Testing

extension Harness {
  /// Waits for the reload. - Returns: the generation that is in force.
  @discardableResult
  func reload() async throws -> Int {
    let ran = try await prismctl("reload", "--json")
    guard ran.exitCode == 0 else { throw Failed("prismctl reload: \(ran.output)\(ran.error)") }
    return try #require(try JSONValue(parsing: Array(ran.output.utf8))["generation"]?.int)
  }

  /// The value of a key that the daemon works with, of a namespace or of the daemon itself.
  func inForce(_ key: String, of namespace: String? = nil) async throws -> JSONValue? {
    let ran = try await prismctl("config", "show", "--json")
    guard ran.exitCode == 0 else { throw Failed("prismctl config show: \(ran.error)") }
    let shown = try JSONValue(parsing: Array(ran.output.utf8))
    return (namespace.map { shown["namespaces"]?[$0] } ?? shown["daemon"])??[key]
  }

  func generation() async throws -> Int { try #require(try await status()["generation"]?.int) }
}
