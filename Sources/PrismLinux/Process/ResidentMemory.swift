import CLinux
import Glibc

/// The memory of the process.
public enum ResidentMemory {
  /// Lets the heap give back blocks of 1 MiB and more as soon as they are free. Else it keeps them once it has seen larger ones,
  /// for each of its threads. Call it first.
  public static func giveBackLargeBlocks() {
    mallopt(M_MMAP_THRESHOLD, 1 << 20)
    mallopt(M_TRIM_THRESHOLD, 4 << 20)
    mallopt(M_ARENA_MAX, 2)
  }

  /// Gives back what only the start, or a load that is over, needed: free memory of the heap, and pages of code.
  ///
  /// Code is clean pages of files, of which an idle daemon uses a tenth. Pages that are needed again come from the page
  /// cache, with a fault of a microsecond for 64 KiB. This costs a few hundred system calls.
  public static func giveBack() {
    malloc_trim(0)
    prism_forget_code()
  }
}
