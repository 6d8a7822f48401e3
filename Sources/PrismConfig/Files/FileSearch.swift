import PrismBase

/// Where a relative path of a configuration is looked up.
package struct FileSearch: Sendable {
  /// `$CREDENTIALS_DIRECTORY` of systemd's LoadCredential, where there is one.
  let credentials: String?
  /// Absolute: the daemon's configuration folder, then the one of the file that names the path.
  let folders: [String]

  /// systemd knows no folders among credentials: `LoadCredential=keys:/etc/prism/keys` makes `keys_main.key` of
  /// `keys/main.key` (systemd.exec(5)).
  package func candidates(_ path: String) -> [String] {
    if path.hasPrefix("/") { return [path] }
    let credential = credentials.map { [FilePath.joined($0, path.replacing("/", with: "_"))] } ?? []
    return credential + ((credentials.map { [$0] } ?? []) + folders).map { FilePath.joined($0, path) }
  }

  /// For people, behind "in".
  var places: String {
    let credentials = credentials.map { ["$CREDENTIALS_DIRECTORY (\($0))"] } ?? []
    return folders.reduce(into: credentials) { if !$0.contains($1) { $0.append($1) } }.joined(separator: " or in ")
  }

  /// Reads the first candidate that exists. If no candidate exists, the path is that of the last one.
  func read(_ path: String, bytesMax: Int) -> (path: String, result: Result<(bytes: [UInt8], mode: UInt32), FileFault>)
  {
    var last = (
      path: path,
      result: Result<(bytes: [UInt8], mode: UInt32), FileFault>.failure(FileFault("not found", isContent: false))
    )
    for candidate in candidates(path) {
      do throws(FileFault) {
        return (candidate, .success(try FileReading.read(candidate, bytesMax: bytesMax)))
      } catch {
        last = (candidate, .failure(error.isDenied && credentials != nil ? Self.notHandedOver : error))
        if !error.isMissing { return last }
      }
    }
    return last
  }

  private static let notHandedOver = FileFault(
    "permission denied, and it is not among the credentials; restart the unit, which is handed them at its start",
    isContent: false)
}
