public import PrismConfig
public import PrismProtocol
import Synchronization

/// The folder where namespaces are configured: refusals name its files, and `prismd --dev` adds files on demand. One for the
/// life of the daemon.
public final class NamespaceFiles: Sendable {
  /// Adds the file of a namespace, and returns its content; nil if that fails.
  public typealias Adding = @Sendable (NamespaceName) -> NamespaceConfiguration?

  /// Namespaces that are added at most.
  private static let addedMax = 200

  private let folder: String
  private let add: Adding?
  private let added = Mutex<[NamespaceName: NamespaceConfiguration]>([:])

  /// - Parameter folder: absolute. - Parameter add: default: only people add namespaces.
  public init(folder: String = "namespaces.d", add: Adding? = nil) { (self.folder, self.add) = (folder, add) }

  func path(of name: NamespaceName) -> String { "\(folder)/\(name).yaml" }

  /// nil if the namespace can't be added. The next reload has it too.
  func configuration(adding name: NamespaceName) -> NamespaceConfiguration? {
    guard let add else { return nil }
    return added.withLock { added in
      if added[name] == nil, added.count < Self.addedMax { added[name] = add(name) }
      return added[name]
    }
  }

  /// The refusal of a namespace that is not configured, with what to do.
  func unknown(_ text: String) -> Refusal {
    guard let name = NamespaceName(text) else {
      return Refusal(.unknownNamespace, "the namespace is no name: 1 to 64 of A-Z a-z 0-9 _ -")
    }
    return Refusal(
      .unknownNamespace,
      "the namespace \(name) is not configured: write \(path(of: name)) with two lines, "
        + "`url: https://COLLECTOR` and `monitorList: [{type: \"*\"}]`")
  }
}
