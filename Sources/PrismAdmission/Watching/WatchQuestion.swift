import PrismProtocol

/// The object of `watch`, taken apart: the switches of a namespace, or a table of records. Pure.
struct WatchQuestion {
  private let value: JSONValue

  /// - Throws: `bad_request`.
  init(_ object: Span<UInt8>) throws(Refusal) {
    do { value = try JSONValue(parsing: object.withUnsafeBufferPointer { Array($0) }) } catch {
      throw Refusal(.badRequest, "`watch`: \(error.reason)")
    }
  }

  /// It names a table.
  var isOfTable: Bool { value["table"] != nil }

  /// Of a question for switches: `prism` if it names no namespace. - Throws: `bad_request`.
  func namespace() throws(Refusal) -> String {
    var name = NamespaceName.prism.text
    for member in value.object ?? [] {
      switch member.key {
      case "namespace":
        guard let text = member.value.string else { throw Refusal(.badRequest, "`watch.namespace` must be a string") }
        name = text
      case "configuration": continue
      default:
        throw Refusal(
          .badRequest, "unknown field `watch.\(member.key.prefix(64))`; known are namespace, configuration, table")
      }
    }
    guard value["configuration"]?.bool == true else {
      throw Refusal(.badRequest, "`watch` needs a `table`, or `\"configuration\":true`")
    }
    return name
  }
}
