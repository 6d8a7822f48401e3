import PrismBase
public import PrismConfig
public import PrismProtocol

/// The first thing that an operator has to do before reports leave, with its command.
public enum NextStep {
  /// - Parameter unsent: rows of a namespace that wait.
  /// - Returns: nil if each namespace that has something to send has a url. The loader sees to the keys of those.
  public static func text(_ loaded: LoadedConfiguration, unsent: (NamespaceName) -> Int) -> String? {
    let uploading = loaded.snapshot.namespaces.values.filter(\.isUpload)
    // An unused built-in namespace needs no url where another one has it.
    let isFirst = uploading.allSatisfy { $0.url == nil }
    let concerned = uploading.filter { $0.url == nil && (isFirst || unsent($0.name) > 0) }
      .min { (unsent($1.name), $0.name) < (unsent($0.name), $1.name) }
    guard let first = concerned else { return nil }
    let url = "`echo 'url: https://COLLECTOR' >>\(loaded.namespaceFolder)/\(first.name).yaml`"
    let why = "nothing of the namespace \(first.name) is sent, because it has no url"
    guard loaded.snapshot.daemon.keys.isEmpty else { return "\(why): run \(url)" }
    let folder = FilePath.folder(of: loaded.mainFile)
    return "\(why), and there is no key: run `prismctl keys new \(folder)/keys/main.key`, write "
      + "`keys: [{id: main, file: keys/main.key}]` into \(loaded.mainFile), run \(url), and start prismd again"
  }
}
