import Dispatch
import Glibc
import PrismBase
public import PrismEngine

/// A file of the state folder that is written whole or not at all. Works on a queue of its own.
public final class StateFile: KeptFile {
  private let path: String
  private let queue = DispatchQueue(label: "prism.state.file")

  /// The folder must exist by the first write.
  public init(folder: String, name: String) {
    path = "\(folder)/\(name)"
  }

  /// The content of the file; nil if it does not exist.
  public func read(bytesMax: Int) async throws(KeptFileFault) -> [UInt8]? {
    let path = path
    return try await onQueue { () throws(KeptFileFault) -> [UInt8]? in
      do throws(FileError) {
        return try SmallFile.read(path, bytesMax: bytesMax)
      } catch {
        if error.isMissing { return nil }
        throw KeptFileFault(error.description)
      }
    }
  }

  /// Replaces the content by a new file and a rename, synced: a crash leaves the old content or the new one.
  public func write(_ bytes: [UInt8]) async throws(KeptFileFault) {
    let path = path
    try await onQueue { () throws(KeptFileFault) in
      do throws(FileError) { try SmallFile.replace(path, with: bytes) } catch {
        throw KeptFileFault(error.description)
      }
    }
  }

  /// Renames a damaged file. Returns its new path.
  public func setAside() async throws(KeptFileFault) -> String {
    let path = path
    return try await onQueue { () throws(KeptFileFault) in
      guard rename(path, path + ".damaged") == 0 else { throw Self.fault(path, "cannot be set aside") }
      return path + ".damaged"
    }
  }

  private static func fault(_ path: String, _ what: String) -> KeptFileFault {
    KeptFileFault("\(path): \(what): \(String(cString: strerror(errno)))")
  }

  private func onQueue<Value: Sendable>(
    _ body: @escaping @Sendable () throws(KeptFileFault) -> Value
  ) async throws(KeptFileFault) -> Value {
    let result: Result<Value, KeptFileFault> = await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }
}
