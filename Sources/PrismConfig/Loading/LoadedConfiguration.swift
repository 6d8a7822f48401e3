import PrismBase
import PrismProtocol

/// A sound configuration with what is known of how it came about.
public struct LoadedConfiguration: Sendable {
  /// Of generation 1; who publishes it numbers it.
  public var snapshot: Snapshot
  /// The origin of each value.
  public var origins: Origins
  /// Every file that was read, including key files, as absolute paths. A change of one of them, or of the names in
  /// `namespaceFolder`, is a change of the configuration.
  public let files: [String]
  /// `namespaces.d`, absolute, whether it exists or not.
  public let namespaceFolder: String
  /// The daemon's file, as it was named.
  let path: String
  /// The same from the root.
  public var mainFile: String { FilePath.absolute(path) }
  /// Each namespace by the files alone: the layer below remote configuration.
  let drafts: [NamespaceName: NamespaceDraft]
}
