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
  private(set) var drafts: [NamespaceName: NamespaceDraft]
  /// Namespaces whose files say `retired: true`.
  let retired: Set<NamespaceName>

  /// These files, and the namespaces of `before` whose files are gone: absence is no statement, `retired: true` is one.
  /// A namespace whose key is not configured any more goes.
  /// - Parameter before: the files until now, without remote configuration.
  public func keepingGone(of before: LoadedConfiguration) -> LoadedConfiguration {
    var result = self
    for (name, draft) in before.drafts
    where draft.hasFile && drafts[name]?.hasFile != true && !retired.contains(name) {
      let hasRoom = result.drafts[name] != nil || result.drafts.count < LoadingRun.namespaceFilesMax
      guard var kept = before.snapshot.namespaces[name], hasRoom,
        kept.keyId == nil || snapshot.daemon.keys.contains(where: { $0.id == kept.keyId })
      else { continue }
      kept.isFileGone = true
      result.snapshot.namespaces[name] = kept
      result.drafts[name] = draft
      result.drafts[name]?.value.isFileGone = true
      result.origins.namespaces[name] = before.origins.namespaces[name]
    }
    return result
  }
}
