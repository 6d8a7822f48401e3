/// Where a relative path of a configuration is looked up.
struct FileSearch: Sendable {
  /// `$CREDENTIALS_DIRECTORY` of systemd's LoadCredential, where there is one.
  let credentials: String?
  /// Absolute: the daemon's configuration folder, then the one of the file that names the path.
  let folders: [String]

  func candidates(_ path: String) -> [String] {
    if path.hasPrefix("/") { return [path] }
    return ((credentials.map { [$0] } ?? []) + folders).map { FilePath.joined($0, path) }
  }

  /// For people.
  var places: String {
    ((credentials.map { ["$CREDENTIALS_DIRECTORY (\($0))"] } ?? []) + folders).joined(separator: " nor in ")
  }

  /// The first candidate that exists, read. Its path is the last candidate's where none does.
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
        last = (candidate, .failure(error))
        if !error.isMissing { return last }
      }
    }
    return last
  }
}
