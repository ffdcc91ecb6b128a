// Keeps precompiled headers of the library: see cmake/precompiled.cmake.
