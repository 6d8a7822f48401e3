import PrismProtocol

/// A sound configuration with what is known of how it came about.
public struct LoadedConfiguration: Sendable {
  /// Of generation 1; who publishes it numbers it.
  public var snapshot: Snapshot
  public var origins: Origins
  /// Every file that was read, key files and the like included, as absolute paths: a change of one of them, or of the
  /// names in `namespaceFolder`, is a change of the configuration.
  public let files: [String]
  /// `namespaces.d`, absolute, whether it exists or not.
  public let namespaceFolder: String
  /// The daemon's file, as it was named.
  let path: String
  /// What the files alone say of each namespace: the layer that remote configuration is laid over.
  let drafts: [NamespaceName: NamespaceDraft]
}
