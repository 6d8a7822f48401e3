import Dispatch
import Glibc
public import PrismEngine

/// A file of the state folder that is written whole or not at all: to a file beside it, synced, renamed over the old
/// one, the folder synced. Works on a queue of its own.
public final class StateFile: RemoteCache {
  private let path: String
  private let folder: String
  private let queue = DispatchQueue(label: "prism.state.file")

  /// The folder must exist by the first write.
  public init(folder: String, name: String) {
    (path, self.folder) = ("\(folder)/\(name)", folder)
  }

  public func read(bytesMax: Int) async throws(RemoteCacheFault) -> [UInt8]? {
    let path = path
    return try await onQueue { () throws(RemoteCacheFault) -> [UInt8]? in
      if access(path, F_OK) != 0 && errno == ENOENT { return nil }
      do throws(FileError) {
        return try SmallFile.read(path, bytesMax: bytesMax)
      } catch { throw RemoteCacheFault(error.description) }
    }
  }

  public func write(_ bytes: [UInt8]) async throws(RemoteCacheFault) {
    let (path, folder) = (path, folder)
    try await onQueue { () throws(RemoteCacheFault) in
      let fresh = path + ".new"
      try Self.writeSynced(bytes, to: fresh)
      guard rename(fresh, path) == 0 else { throw Self.fault(path, "cannot be replaced") }
      let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else { throw Self.fault(folder, "cannot be opened") }
      defer { close(descriptor) }
      guard fsync(descriptor) == 0 else { throw Self.fault(folder, "cannot be synced") }
    }
  }

  public func setAside() async throws(RemoteCacheFault) -> String {
    let path = path
    return try await onQueue { () throws(RemoteCacheFault) in
      guard rename(path, path + ".damaged") == 0 else { throw Self.fault(path, "cannot be set aside") }
      return path + ".damaged"
    }
  }

  private static func writeSynced(_ bytes: [UInt8], to path: String) throws(RemoteCacheFault) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fault(path, "cannot be made") }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw fault(path, "cannot be written") }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw fault(path, "cannot be synced") }
  }

  private static func fault(_ path: String, _ what: String) -> RemoteCacheFault {
    RemoteCacheFault("\(path): \(what): \(String(cString: strerror(errno)))")
  }

  private func onQueue<Value: Sendable>(
    _ body: @escaping @Sendable () throws(RemoteCacheFault) -> Value
  ) async throws(RemoteCacheFault) -> Value {
    let result: Result<Value, RemoteCacheFault> = await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }
}
